package ecma

// A Table numbers a metadata table as the tables stream does (II.22). The high
// byte of a metadata token is the same number.
type Table uint8

const (
	Module       Table = 0x00
	TypeRef      Table = 0x01
	TypeDef      Table = 0x02
	MethodPtr    Table = 0x05 // only in uncompressed (#-) streams: not in ECMA-335
	MethodDef    Table = 0x06
	Param        Table = 0x08
	TypeSpec     Table = 0x1b
	Assembly     Table = 0x20
	AssemblyRef  Table = 0x23
	NestedClass  Table = 0x29
	GenericParam Table = 0x2a

	// Of portable PDBs (PortablePdb-Metadata.md of dotnet/runtime): not in ECMA-335.
	Document               Table = 0x30
	MethodDebugInformation Table = 0x31

	tableCount = 64
	maxColumns = 9
)

// A column is what a column of a table holds: a number of fixed size, an index
// into a heap, an index into one table, or one into several (a coded index).
type column uint8

const (
	none column = 0
	u2   column = 0x80 + iota // two bytes
	u4                        // four bytes
	str                       // #Strings
	guid                      // #GUID
	blob                      // #Blob
	typeDefOrRef
	hasConstant
	hasCustomAttribute
	hasFieldMarshal
	hasDeclSecurity
	memberRefParent
	hasSemantics
	methodDefOrRef
	memberForwarded
	implementation
	customAttributeType
	resolutionScope
	typeOrMethodDef
	hasCustomDebugInformation
)

// index is the column that holds row numbers of t.
func index(t Table) column { return column(t) | 0x40 }

// coded says of which tables a coded index can be, in the order of its tag
// (II.24.2.6). A 0xff is a tag that is not used.
var coded = map[column][]Table{
	typeDefOrRef:    {TypeDef, TypeRef, TypeSpec},
	hasConstant:     {0x04, Param, 0x17},
	hasFieldMarshal: {0x04, Param},
	hasDeclSecurity: {TypeDef, MethodDef, Assembly},
	memberRefParent: {TypeDef, TypeRef, 0x1a, MethodDef, TypeSpec},
	hasSemantics:    {0x14, 0x17},
	methodDefOrRef:  {MethodDef, 0x0a},
	memberForwarded: {0x04, MethodDef},
	implementation:  {0x26, AssemblyRef, 0x27},
	resolutionScope: {Module, 0x1a, AssemblyRef, TypeRef},
	typeOrMethodDef: {TypeDef, MethodDef},
	hasCustomAttribute: {MethodDef, 0x04, TypeRef, TypeDef, Param, 0x09, 0x0a, Module, 0x0e, 0x17, 0x14,
		0x11, 0x1a, TypeSpec, Assembly, AssemblyRef, 0x26, 0x27, 0x28, GenericParam, 0x2c, 0x2b},
	hasCustomDebugInformation: {MethodDef, 0x04, TypeRef, TypeDef, Param, 0x09, 0x0a, Module, 0x0e, 0x17, 0x14,
		0x11, 0x1a, TypeSpec, Assembly, AssemblyRef, 0x26, 0x27, 0x28, GenericParam, 0x2c, 0x2b, Document, 0x32, 0x33, 0x34, 0x35},
	customAttributeType: {0xff, 0xff, MethodDef, 0x0a, 0xff},
}

// schema lists the columns of every table (II.22.2 to II.22.39; PortablePdb-Metadata.md). The rows that
// lie before a table decide where it begins, so all of them must be here. Those
// that ECMA-335 does not have are the *Ptr tables of uncompressed streams and
// the two logs of edit-and-continue (src/coreclr/inc/metamodelpub.h, .NET 10).
var schema = [tableCount][]column{
	Module:       {u2, str, guid, guid, guid},
	TypeRef:      {resolutionScope, str, str},
	TypeDef:      {u4, str, str, typeDefOrRef, index(0x04), index(MethodDef)},
	0x03:         {index(0x04)}, // FieldPtr
	0x04:         {u2, str, blob},
	MethodPtr:    {index(MethodDef)},
	MethodDef:    {u4, u2, u2, str, blob, index(Param)},
	0x07:         {index(Param)}, // ParamPtr
	Param:        {u2, u2, str},
	0x09:         {index(TypeDef), typeDefOrRef},                   // InterfaceImpl
	0x0a:         {memberRefParent, str, blob},                     // MemberRef
	0x0b:         {u2, hasConstant, blob},                          // Constant
	0x0c:         {hasCustomAttribute, customAttributeType, blob},  // CustomAttribute
	0x0d:         {hasFieldMarshal, blob},                          // FieldMarshal
	0x0e:         {u2, hasDeclSecurity, blob},                      // DeclSecurity
	0x0f:         {u2, u4, index(TypeDef)},                         // ClassLayout
	0x10:         {u4, index(0x04)},                                // FieldLayout
	0x11:         {blob},                                           // StandAloneSig
	0x12:         {index(TypeDef), index(0x14)},                    // EventMap
	0x13:         {index(0x14)},                                    // EventPtr
	0x14:         {u2, str, typeDefOrRef},                          // Event
	0x15:         {index(TypeDef), index(0x17)},                    // PropertyMap
	0x16:         {index(0x17)},                                    // PropertyPtr
	0x17:         {u2, str, blob},                                  // Property
	0x18:         {u2, index(MethodDef), hasSemantics},             // MethodSemantics
	0x19:         {index(TypeDef), methodDefOrRef, methodDefOrRef}, // MethodImpl
	0x1a:         {str},                                            // ModuleRef
	TypeSpec:     {blob},
	0x1c:         {u2, memberForwarded, str, index(0x1a)}, // ImplMap
	0x1d:         {u4, index(0x04)},                       // FieldRVA
	0x1e:         {u4, u4},                                // ENCLog
	0x1f:         {u4},                                    // ENCMap
	Assembly:     {u4, u2, u2, u2, u2, u4, blob, str, str},
	0x21:         {u4},         // AssemblyProcessor
	0x22:         {u4, u4, u4}, // AssemblyOS
	AssemblyRef:  {u2, u2, u2, u2, u4, blob, str, str, blob},
	0x24:         {u4, index(AssemblyRef)},           // AssemblyRefProcessor
	0x25:         {u4, u4, u4, index(AssemblyRef)},   // AssemblyRefOS
	0x26:         {u4, str, blob},                    // File
	0x27:         {u4, u4, str, str, implementation}, // ExportedType
	0x28:         {u4, u4, str, implementation},      // ManifestResource
	NestedClass:  {index(TypeDef), index(TypeDef)},
	GenericParam: {u2, u2, typeOrMethodDef, str},
	0x2b:         {methodDefOrRef, blob},              // MethodSpec
	0x2c:         {index(GenericParam), typeDefOrRef}, // GenericParamConstraint

	Document:               {blob, guid, blob, guid},
	MethodDebugInformation: {index(Document), blob},
	0x32:                   {index(MethodDef), index(0x35), index(0x33), index(0x34), u4, u4}, // LocalScope
	0x33:                   {u2, u2, str},                                                     // LocalVariable
	0x34:                   {str, blob},                                                       // LocalConstant
	0x35:                   {index(0x35), blob},                                               // ImportScope
	0x36:                   {index(MethodDef), index(MethodDef)},                              // StateMachineMethod
	0x37:                   {hasCustomDebugInformation, guid, blob},                           // CustomDebugInformation
}
