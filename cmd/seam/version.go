package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	formats := []string{"text", "json"}
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Which Seam this is: version, commit, Go",
		Long: `Version shows which Seam this is, for a report of a defect: the version of the
module, the commit that it was built from and whether files had been changed, and
the Go that built it.

Go notes the commit in programs that are built in a clone with git at hand. One
that is built without (from an archive, with -buildvcs=false, in a worktree) does
not know its commit, and says so.`,
		Example: `  seam version
  seam version --format json | jq -r .commit`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch format {
			case "text":
				return thisVersion().writeText(cmd.OutOrStdout())
			case "json":
				return thisVersion().writeJSON(cmd.OutOrStdout())
			}
			return misuse("--format %s: there are %s", format, strings.Join(formats, ", "))
		},
	}
	cmd.Flags().StringVar(&format, "format", formats[0], "write "+strings.Join(formats, " or "))
	completes(cmd, "format", formats...)
	return cmd
}

// A version says which program this is. What is not known is "", and nil for
// Modified.
type version struct {
	Module     string
	Version    string // of the module: v1.2.3, or made of a commit and its time
	Commit     string // in full, in hexadecimal
	CommitTime string // as in RFC 3339
	Modified   *bool  // files had been changed since the commit
	Go         string
}

// thisVersion returns the version of the running program.
func thisVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return versionOf(info)
}

// versionOf returns what Go has noted in a program when it built it: package
// debug documents the settings vcs.revision, vcs.time and vcs.modified.
func versionOf(info *debug.BuildInfo) version {
	v := version{Module: info.Main.Path, Version: info.Main.Version, Go: info.GoVersion}
	if v.Version == "(devel)" {
		v.Version = "" // what Go writes where it does not know
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.CommitTime = s.Value
		case "vcs.modified":
			modified := s.Value == "true"
			v.Modified = &modified
		}
	}
	return v
}

// writeText writes v in lines for eyes.
func (v version) writeText(w io.Writer) error {
	name, commit := "seam "+v.Version, "commit "+v.Commit
	if v.Version == "" {
		name = "seam, of a version that was not noted when it was built"
	}
	if v.Commit == "" {
		commit = "commit not noted when it was built"
	}
	if v.CommitTime != "" {
		commit += " of " + v.CommitTime
	}
	if v.Modified != nil && *v.Modified {
		commit += ", with changed files"
	}
	_, err := fmt.Fprintf(w, "%s\n%s\nbuilt with %s for %s %s\n", name, commit, v.Go, runtime.GOOS, runtime.GOARCH)
	return err
}

// writeJSON writes v as docs/json.md has it.
func (v version) writeJSON(w io.Writer) error {
	known := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	b, err := json.MarshalIndent(struct {
		Schema     int     `json:"schema"`
		Module     *string `json:"module"`
		Version    *string `json:"version"`
		Commit     *string `json:"commit"`
		CommitTime *string `json:"commit_time"`
		Modified   *bool   `json:"modified"`
		Go         string  `json:"go"`
		OS         string  `json:"os"`
		Arch       string  `json:"arch"`
	}{1, known(v.Module), known(v.Version), known(v.Commit), known(v.CommitTime), v.Modified, v.Go, runtime.GOOS, runtime.GOARCH}, "", " ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", b)
	return err
}
