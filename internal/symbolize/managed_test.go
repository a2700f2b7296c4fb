package symbolize

import (
	"testing"

	"github.com/seamwalk/seam/managed/code"
)

func TestManaged(t *testing.T) {
	tests := []struct {
		m    code.Method
		want string
	}{
		{code.Method{}, ""},
		{code.Method{Name: "void [App] A+B::Run(int)[Tier1]", Verbatim: true}, "void [App] A+B::Run(int)[Tier1]"},
		{code.Method{Name: "Program.Main", Params: []string{"string[]"}}, "Program.Main(string[])"},
		{code.Method{Name: "A.B.Outer+Inner.Run"}, "A.B.Outer.Inner.Run()"},
		{code.Method{Name: "A.Type..ctor", Params: []string{"int"}}, "A.Type..ctor(int)"},
		{code.Method{Name: "System.Collections.Generic.List`1.Add", TypeArgs: []string{"System.__Canon"}, Params: []string{"System.__Canon"}},
			"System.Collections.Generic.List<__Canon>.Add(__Canon)"},
		{code.Method{Name: "A.Outer`1+Inner`2.Map", TypeArgs: []string{"int", "string", "long"}, MethodArgs: []string{"bool"}},
			"A.Outer<int>.Inner<string, long>.Map<bool>()"},
		{code.Method{Name: "A.Outer`1+Inner`2.Map"}, "A.Outer.Inner.Map()"},
		{code.Method{Name: "dynamicClass.IL_STUB_PInvoke", Dynamic: true, ILStub: true}, "dynamicClass.IL_STUB_PInvoke"},

		// What is not known.
		{code.Method{Name: "System.Threading.Thread.Join", Unknown: code.PartParams}, "System.Threading.Thread.Join(?)"},
		{code.Method{Name: "A.List`1+Node`2.Add", Params: []string{"T"}, Unknown: code.PartTypeArgs}, "A.List<?>.Node<?, ?>.Add(T)"},
		{code.Method{Name: "A.Sum", Unknown: code.PartMethodArgs | code.PartParams}, "A.Sum?(?)"},
		{code.Method{Name: "dynamicClass.Made", Dynamic: true, Unknown: code.PartParams}, "dynamicClass.Made"},

		// What csc generates; the names are those of Roslyn 4.
		{code.Method{Name: "App.Service+<Load>d__3.MoveNext"}, "App.Service.Load()"},
		{code.Method{Name: "App.Service`1+<Load>d__3`1.MoveNext", TypeArgs: []string{"int", "string"}}, "App.Service<int>.Load<string>()"},
		{code.Method{Name: "App.Service+<>c.<Run>b__0_1", Params: []string{"int"}}, "App.Service.Run.lambda_1(int)"},
		{code.Method{Name: "App.Service.<Run>b__7_0"}, "App.Service.Run.lambda_0()"},
		{code.Method{Name: "App.Service+<>c__DisplayClass3_0.<Run>b__1"}, "App.Service.Run.lambda_1()"},
		{code.Method{Name: "App.Service.<Run>g__Local|3_0", Params: []string{"int"}}, "App.Service.Run.Local(int)"},
		{code.Method{Name: "Program+<>c+<<Main>b__0_1>d.MoveNext"}, "Program.Main.lambda_1()"},
		{code.Method{Name: "Program+<<Main>g__Go|0_3>d.MoveNext"}, "Program.Main.Go()"},
		{code.Method{Name: "App.Tree`1+<Walk>d__2.<>m__Finally1", TypeArgs: []string{"int"}}, "App.Tree<int>.Walk()"},
		{code.Method{Name: "App.Tree+<Walk>d__2.System.IDisposable.Dispose"}, "App.Tree.<Walk>d__2.System.IDisposable.Dispose()"},
		{code.Method{Name: "App.Link+<System-IAsyncDisposable-DisposeAsync>d__4.MoveNext"}, "App.Link.System.IAsyncDisposable.DisposeAsync()"},
		{code.Method{Name: "Program.<Main>", Params: []string{"string[]"}}, "Program.Main(string[])"},
		{code.Method{Name: "Program+<>c__DisplayClass0_0.<<Main>$>b__2"}, "Program.Main.lambda_2()"},
		{code.Method{Name: "App.Service+<>c__3`1.<Run>b__3_0", TypeArgs: []string{"int"}}, "App.Service.Run.lambda_0()"},
		{code.Method{Name: "App.<Program>F5BB1__Point.Norm"}, "App.Point.Norm()"},
		{code.Method{Name: "<Program>F5BB1__List`1+<Load>d__3.MoveNext", TypeArgs: []string{"int"}}, "List<int>.Load()"},
		{code.Method{Name: "<Program>F5BB1.Norm"}, "<Program>F5BB1.Norm()"},
		{code.Method{Name: "Program.<Main>$", Params: []string{"string[]"}}, "Program.Main(string[])"},
		{code.Method{Name: "App.Service+<>c..ctor"}, "App.Service.<>c..ctor()"},
		{code.Method{Name: "App.Service+<Load>d__3.SetStateMachine"}, "App.Service.<Load>d__3.SetStateMachine()"},
		// Explicit implementation of a generic interface.
		{code.Method{Name: "App.Bag.System.Collections.Generic.IEnumerable<T>.GetEnumerator"}, "App.Bag.System.Collections.Generic.IEnumerable<T>.GetEnumerator()"},
		// Broken ones stay what they are.
		{code.Method{Name: "<"}, "<()"},
		{code.Method{Name: "A.<>"}, "A.<>()"},
		{code.Method{Name: "A+<X.MoveNext"}, "A.<X.MoveNext()"},
		{code.Method{Name: "List`99999999999.Add", TypeArgs: []string{"int"}}, "List.Add()"},
	}
	for _, tt := range tests {
		if got := Managed(&tt.m); got != tt.want {
			t.Errorf("Managed(%q) = %q, want %q", tt.m.Name, got, tt.want)
		}
	}
}

func TestDemangle(t *testing.T) {
	for in, want := range map[string]string{
		"pthread_cond_wait@@GLIBC_2.3.2":         "pthread_cond_wait",
		"pow@GLIBC_2.2.5":                        "pow",
		"Mix":                                    "Mix", // not "long long int::*", which it would be as a type
		"_ZN6Thread11DoExtraWorkEv":              "Thread::DoExtraWork",
		"_ZNSt6vectorIiSaIiEE9push_backERKi":     "std::vector<int, std::allocator<int> >::push_back",
		"_ZN4core3fmt5write17h0123456789abcdefE": "core::fmt::write",
		"_Z":                                     "_Z",
		"malloc@plt":                             "malloc@plt",
		"_ZN1A1bEv@plt":                          "A::b@plt",
	} {
		if got := Demangle(in); got != want {
			t.Errorf("Demangle(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzManaged(f *testing.F) {
	f.Add("App.Service+<>c__DisplayClass3_0.<Run>b__1", "int")
	f.Add("App.Service`1+<Load>d__3`1.MoveNext", "string")
	f.Fuzz(func(t *testing.T, name, arg string) {
		m := code.Method{Name: name, TypeArgs: []string{arg}, Params: []string{arg}}
		if got := Managed(&m); len(got) > 4*len(name)+16*len(arg)+64 {
			t.Errorf("Managed(%q) is %d bytes long", name, len(got))
		}
	})
}
