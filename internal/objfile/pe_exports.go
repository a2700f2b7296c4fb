package objfile

import "github.com/seamwalk/seam/arch"

// Export returns the RVA of the function or variable that the export table at
// table has under the name. The image is mapped section by section at base. The
// names are sorted (PE format, "Export Name Pointer Table"), so few are read.
func Export(r Reader, base, table arch.Addr, name string) (rva uint32, ok bool) {
	b := r.View(table, 40)
	if b == nil {
		return 0, false
	}
	nfuncs, nnames := le32(b[20:]), le32(b[24:])
	funcs, names, ords := base+arch.Addr(le32(b[28:])), base+arch.Addr(le32(b[32:])), base+arch.Addr(le32(b[36:]))
	lo, hi := arch.Addr(0), arch.Addr(nnames)
	for lo < hi {
		k := (lo + hi) / 2
		at, ok := u32(r, names+4*k)
		if !ok {
			return 0, false
		}
		got, ok := text(r, base+arch.Addr(at), maxExport)
		switch {
		case !ok:
			return 0, false
		case got < name:
			lo = k + 1
		case got > name:
			hi = k
		default:
			o := r.View(ords+2*k, 2)
			if o == nil || uint32(le16(o)) >= nfuncs {
				return 0, false
			}
			return u32(r, funcs+4*arch.Addr(le16(o)))
		}
	}
	return 0, false
}

// maxExport bounds the name of an exported symbol, in bytes.
const maxExport = 4095
