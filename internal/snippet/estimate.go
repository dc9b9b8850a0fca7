package snippet

import "path"

const (
	// maxTokens bounds the nesting that the scanner overlooks in files above maxTyped: esbuild
	// needs at most 4 KiB of stack a token, and Go ends the process at 512 MiB.
	maxTokens = 96 << 10

	// maxName bounds the names of variables: for a name that no file exports, esbuild looks
	// for similar ones, which takes memory quadratic in their length.
	maxName = 256

	// maxBundleCost is the maximum estimated time of esbuild for all files, in ns.
	maxBundleCost = 2e9

	computedImport = "import() needs a string as its path"
	nameTooLong    = "this name is too long"
)

// An Estimate bounds the time and memory that esbuild needs to bundle files together. The
// zero value is the one of no files.
type Estimate struct {
	ns    int // the sum of the files' costs
	links links
	enums enums
}

// Add adds a file of TypeScript, JSX or JavaScript, as its name says. The error is a limit
// that the files exceed together.
//
// It also rejects import() with an expression as its path: esbuild would search the host's
// folders for it.
func (e *Estimate) Add(name, code string) *SyntaxError {
	d := newDraft(code)
	err := e.add(d, name)
	if err != nil {
		err.Limit = true
	}
	return err
}

func (e *Estimate) add(d draft, name string) *SyntaxError {
	if n := validLength(d.text); n < len(d.text) {
		return d.errorAt(n, "the code is not UTF-8")
	}
	if len(d.text) > maxTyped && countTokens(d.text) > maxTokens {
		return d.errorAt(0, tooComplex)
	}
	s := newScanner(d.text, hasJSX(path.Ext(name)))
	s.mentions = &mentions{names: make(map[string]*mention)}
	s.scan()
	if err := d.refusal(s); err != nil {
		return err
	}
	s.cost.addDiagnostic(s.mentions.bytes())
	if s.longName > 0 {
		return d.errorAt(s.longName-1, nameTooLong)
	}
	if at, reason := e.links.add(d.text, name); reason != "" {
		return d.errorAt(at, reason)
	}
	e.enums.add(d.text)
	if e.ns += s.cost.ns; e.ns+e.links.cost() > maxBundleCost || e.enums.explode() {
		return d.errorAt(0, tooComplex)
	}
	return nil
}

// countTokens returns at least the number of code's tokens, wherever strings and comments
// start.
func countTokens(code string) (n int) {
	inWord := false
	for i := range len(code) {
		c := code[i]
		isWord := isWordByte(c)
		if isWord && !inWord || !isWord && c > ' ' {
			n++
		}
		inWord = isWord
	}
	return n
}
