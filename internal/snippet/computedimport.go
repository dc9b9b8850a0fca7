package snippet

import (
	"path"

	"gaol/internal/lazyregexp"
)

// CheckFile returns the extension of the language of a file to be bundled: .tsx for a .ts file that is valid only as
// TSX. Linter and bundler thus read the same program. The error is about code that esbuild does not reject: for import()
// with an expression as its path, it would search folders.
func CheckFile(name, code string) (ext string, err *SyntaxError) {
	ext = path.Ext(name)
	if ext == ".json" {
		return ext, nil
	}
	d, c := newDraft(code), compiler{file: "snippet" + ext}
	err = c.checkFile(d, loaderOf(ext))
	imports := importCall().MatchString(code)
	if err != nil || !imports && !mayBeTSX(ext, code) {
		return ext, err
	}
	s, err := Strip(name, code)
	if err != nil { // also esbuild's when it bundles the file
		return ext, err
	}
	tree, at, ok := Parse(s.Code)
	if ok {
		at = tree.computedImport()
	}
	if !imports || at < 0 {
		return s.ext, nil
	}
	before, _ := s.Origin(at)
	return s.ext, d.errorAt(before, "import() needs a string as its path")
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
