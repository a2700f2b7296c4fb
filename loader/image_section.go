package loader

// Section returns the bytes of a section that need not be mapped, as
// ".debug_frame" or ".symtab", unpacked if the file has it compressed. It is
// nil when the image has no such section or no file that has it is at hand. A
// section that the image's file lacks, or whose image has no file, is looked for
// in a separate file of debugging information (see [Finder]).
func (m *Image) Section(name string) []byte {
	if b, ok := m.kept.section(name); ok {
		return b
	}
	if m.src == nil {
		return nil
	}
	if m.Format == "pe" {
		h := m.peHead()
		if h == nil || m.src.open() == nil {
			return nil
		}
		return h.Section(m.src.from(m.shift), name)
	}
	if m.src.open() != nil {
		if b := m.src.elf.Section(m.src.bytes(), name); b != nil {
			return b
		}
	}
	return m.src.debug().Section(name)
}
