package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// TestVersionOf: the notes of programs that were built in different ways, as
// Go 1.26 wrote them.
func TestVersionOf(t *testing.T) {
	const commit, when = "a282186326068204695802665ea3bde786207da5", "2026-11-22T08:43:55Z"
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "CGO_ENABLED", Value: "0"}, {Key: "vcs", Value: "git"},
			{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: when}, {Key: "vcs.modified", Value: modified}}
	}
	tests := []struct {
		how      string
		version  string
		settings []debug.BuildSetting
		text     []string
		json     string
	}{
		{"in a clone", "v0.0.0-20261122084355-a28218632606", vcs("false"),
			[]string{"seam v0.0.0-20261122084355-a28218632606", "commit " + commit + " of " + when},
			`"version":"v0.0.0-20261122084355-a28218632606","commit":"` + commit + `","commit_time":"` + when + `","modified":false`},
		{"with changed files", "v0.0.0-20261122084355-a28218632606+dirty", vcs("true"),
			[]string{"seam v0.0.0-20261122084355-a28218632606+dirty", "commit " + commit + " of " + when + ", with changed files"},
			`"modified":true`},
		{"with -buildvcs=false", "(devel)", nil,
			[]string{"seam, of a version that was not noted when it was built", "commit not noted when it was built"},
			`"version":null,"commit":null,"commit_time":null,"modified":null`},
		{"as a published module", "v1.2.3", nil, []string{"seam v1.2.3", "commit not noted when it was built"}, `"version":"v1.2.3","commit":null`},
	}
	for _, tt := range tests {
		v := versionOf(&debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.org/m", Version: tt.version}, Settings: tt.settings})
		var text, form strings.Builder
		if err := v.writeText(&text); err != nil {
			t.Error(err)
		}
		lines := strings.Split(text.String(), "\n")
		if len(lines) != 4 || lines[0] != tt.text[0] || lines[1] != tt.text[1] || !strings.HasPrefix(lines[2], "built with go1.26.8 for ") {
			t.Errorf("%s: %q", tt.how, lines)
		}
		if err := v.writeJSON(&form); err != nil {
			t.Error(err)
		}
		packed := strings.NewReplacer("\n ", "", "\": ", "\":").Replace(form.String())
		if !strings.Contains(packed, tt.json) || !strings.Contains(packed, `"module":"example.org/m"`) {
			t.Errorf("%s: %s", tt.how, packed)
		}
	}
}

// TestVersionDocumented: docs/json.md explains each field.
func TestVersionDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "## `version --format json`")
	var form strings.Builder
	if err := thisVersion().writeJSON(&form); err != nil || !found {
		t.Fatal(err, found)
	}
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(form.String()), &fields); err != nil || len(fields) < 9 {
		t.Fatalf("%v: %s", err, form.String())
	}
	for f := range fields {
		if !strings.Contains(section, "`"+f+"`") {
			t.Errorf("docs/json.md does not explain %q of seam version", f)
		}
	}
}
