package arch

func arm64Leave(mem Memory, pc Addr, r *Rule) bool { return false }
func arm64AfterCall(mem Memory, a Addr) bool       { return true }
func arm64PEFunction(b []byte) PEFunction          { return PEFunction{} }
func arm64PERule(q *PEQuery, r *Rule) PEResult     { return PEResult{Status: PEBad} }
