package stacks

import (
	"testing"

	"github.com/seamwalk/seam/managed/code"
)

// TestRoles: threads of .NET's own are known by the function that they run, whatever
// of their stack is kept; others have no role.
func TestRoles(t *testing.T) {
	s := openAOT(t, true)
	s.limit = 1
	got := map[uint32]code.Role{}
	for th, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		if th.Role != code.RoleUnknown {
			got[th.TID] = th.Role
		}
	}
	if len(got) != 2 || got[11543] != code.RoleFinalizer || got[11547] != code.RoleSignals {
		t.Errorf("the roles are %v", got)
	}
	for function, want := range map[string]code.Role{
		"TieredCompilationManager::BackgroundWorkerBootstrapper0(void*)": code.RoleTiering,
		"SVR::gc_heap::gc_thread_stub(void*)":                            code.RoleGC,
		"MyTieredCompilationManager::BackgroundWorkerStart()":            code.RoleUnknown,
		"": code.RoleUnknown,
	} {
		if got := roleOf(function); got != want {
			t.Errorf("%s is %q, want %q", function, got, want)
		}
	}
	for function, role := range starts {
		if roles[role] == "" {
			t.Errorf("the role of %s has no words", function)
		}
	}
}
