package clr

// A contract is the runtime's data contract: layouts of its types and values
// of its globals.
type contract struct{}
