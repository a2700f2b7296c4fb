package clr

import (
	"fmt"
	"sync"
)

// nameLayout is where the runtime keeps what names are made of
// (docs/design/datacontracts/RuntimeTypeSystem.md, Loader.md, Object.md).
type nameLayout struct {
	MDFlags3 int `c:"MethodDesc.Flags3AndTokenRemainder"`
	MDIndex  int `c:"MethodDesc.ChunkIndex"`
	MDSlot   int `c:"MethodDesc.Slot"`
	MDFlags  int `c:"MethodDesc.Flags"`

	ChunkSize  int `c:"MethodDescChunk.!"`
	ChunkMT    int `c:"MethodDescChunk.MethodTable"`
	ChunkRange int `c:"MethodDescChunk.FlagsAndTokenRange"`

	InstArgs  int `c:"InstantiatedMethodDesc.PerInstInfo"`
	InstFlags int `c:"InstantiatedMethodDesc.Flags2"`
	InstCount int `c:"InstantiatedMethodDesc.NumGenericArgs"`

	SigAt    int `c:"StoredSigMethodDesc.Sig"`
	SigSize  int `c:"StoredSigMethodDesc.cSig"`
	SigFlags int `c:"StoredSigMethodDesc.ExtendedFlags"`
	DynName  int `c:"DynamicMethodDesc.MethodName"`

	MTFlags    int `c:"MethodTable.MTFlags"`
	MTFlags2   int `c:"MethodTable.MTFlags2"`
	MTVirtuals int `c:"MethodTable.NumVirtuals"`
	MTParent   int `c:"MethodTable.ParentMethodTable"`
	MTModule   int `c:"MethodTable.Module"`
	MTClass    int `c:"MethodTable.EEClassOrCanonMT"`
	MTArgs     int `c:"MethodTable.PerInstInfo"`
	ClassMT    int `c:"EEClass.MethodTable"`
	ClassRank  int `c:"ArrayClass.Rank"`
	// GenericsDictInfo begins with a byte offset since .NET 5; the descriptor
	// of .NET 9 has the second count only.
	DictCount int `c:"GenericsDictInfo.NumDicts,4"`
	DictArgs  int `c:"GenericsDictInfo.NumTypeArgs"`

	DescFlags int `c:"TypeDesc.TypeAndFlags"`
	DescArg   int `c:"ParamTypeDesc.TypeArg"`
	FnCount   int `c:"FnPtrTypeDesc.NumArgs"`
	FnTypes   int `c:"FnPtrTypeDesc.RetAndArgTypes"`
	VarModule int `c:"TypeVarTypeDesc.Module"`
	VarToken  int `c:"TypeVarTypeDesc.Token"`

	ModBase    int `c:"Module.Base"`
	ModDynamic int `c:"Module.DynamicMetadata"`
	ModPath    int `c:"Module.Path"`
	// The simple name has its place in the descriptor only after .NET 10; in
	// 9 and 10 it lies right before the path. newNames fills it in.
	ModName  int `c:"Module.SimpleName,-1"`
	DynSize  int `c:"DynamicMetadata.Size"`
	DynBytes int `c:"DynamicMetadata.Data"`

	ObjectMT   int `c:"Object.m_pMethTab"`
	StringSize int `c:"String.m_StringLength"`
	StringText int `c:"String.m_FirstChar"`
	ExcMessage int `c:"Exception._message"`
	ExcHResult int `c:"Exception._HResult"`
	ExcThrown  int `c:"ExceptionInfo.ThrownObject"`
}

// names is what a Runtime keeps to name methods and types.
type names struct {
	nameLayout
	tokenBits uint64 // bits of a token that a MethodDesc holds; its chunk has the rest
	align     uint64 // unit of MethodDesc.ChunkIndex, in bytes
	kept      *nameCache
}

// A nameCache keeps what was read once, by the address of its structure:
// Modules (*module), types (typeResult), methods (methodResult).
type nameCache struct {
	modules, types, methods sync.Map
}

// newNames resolves layouts; it reads nothing of the process.
func newNames(r *Runtime) (names, error) {
	n := names{kept: new(nameCache)}
	if err := r.data.fill(&n.nameLayout); err != nil {
		return n, err
	}
	if n.ModName < 0 {
		n.ModName = n.ModPath - 8
	}
	var ok bool
	if n.tokenBits, ok = r.data.global("MethodDescTokenRemainderBitCount"); !ok || n.tokenBits > 24 {
		return n, fmt.Errorf("the contract descriptor does not say how a MethodDesc holds its token")
	}
	if n.align, ok = r.data.global("MethodDescAlignment"); !ok {
		n.align = 8
	}
	return n, nil
}
