package snippet

import "gaol/internal/lazyregexp"

// CheckFile checks a file to be bundled, in the language of an extension, for what esbuild does not
// reject. For import() with an expression as its path, esbuild would search folders.
func CheckFile(code, ext string) *SyntaxError {
	d, c := newDraft(code), compiler{file: "file" + ext}
	if err := c.checkFile(d, loaderOf(ext)); err != nil || !importCall().MatchString(code) {
		return err
	}
	s, err := Strip("file"+ext, code)
	if err != nil { // also esbuild's when it bundles the file
		return err
	}
	tree, at, ok := Parse(s.Code)
	if ok {
		if at = tree.computedImport(); at < 0 {
			return nil
		}
	}
	before, _ := s.Origin(at)
	return d.errorAt(before, "import() needs a string as its path")
}

// importCall matches import in all code that calls it.
var importCall = lazyregexp.New(`import\s*[(./]`)

// computedImport returns the offset of a call of import with more than a string, or -1.
func (n *Node) computedImport() int {
	for n := range n.all() {
		if n.Kind != Call || n.Kids[0].Kind != ImportCall {
			continue
		}
		if len(n.Kids) < 2 || n.Kids[1].Kind != Literal && (n.Kids[1].Kind != Template || len(n.Kids[1].Kids) > 1) {
			return n.Start
		}
	}
	return -1
}
