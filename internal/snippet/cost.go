package snippet

const (
	// MaxCode is the maximum size of a snippet in bytes; larger programs should be files.
	// For JavaScript the parser limits the nesting before esbuild runs.
	MaxCode = 256 << 10

	// maxTyped is the maximum size of TypeScript and JSX. esbuild needs up to 4 KiB of
	// stack per byte, for code like !!!!! or {{{{{, and Go ends the process at 512 MiB of
	// stack: 128 KiB of code pass, 192 KiB do not (esbuild 0.28, Go 1.26, amd64). At half
	// of the size that passes, nesting that the scanner overlooks cannot exhaust the
	// stack.
	maxTyped = 64 << 10

	// maxNesting bounds the recursion of the parser and of esbuild: at 4 KiB a level, this
	// many levels need 4 MiB of stack.
	maxNesting = 1000

	// maxMembers bounds chains like a.b.c, for which esbuild also recurses.
	maxMembers = 5000

	// maxCost is the maximum estimated time of esbuild.
	maxCost = 400e6 // ns
)

const (
	nestedTooDeeply = "the code is nested too deeply"
	ambiguousSlash  = "this slash may divide or begin a regular expression: add parentheses"
	tooComplex      = "the code is too complex: parts of it repeat or nest too often"
)

// cost estimates esbuild's time in excess of the part that is linear in the size. The
// factors were measured with code that has nothing else; other code, even of the same
// depth, takes a tenth of it.
type cost struct {
	ns     int
	depth  int
	scopes int // the levels that may declare names
}

// addRename is for a name in TypeScript. To make a name that every scope declares unique,
// esbuild tries as many numbers as there are scopes, in all of them.
func (c *cost) addRename(more int) { c.ns += 46 * (c.scopes + more) * (c.scopes + more) }

// addSequence is for an expression with commas, which esbuild simplifies once for each.
func (c *cost) addSequence(commas int) { c.ns += 27 * commas * commas }

// addDiagnostic is for a message about two places: esbuild counts the lines between them.
func (c *cost) addDiagnostic(bytes int) { c.ns += 5 * bytes }

// addComparison is for a <: esbuild looks for type arguments in the bytes after it.
func (c *cost) addComparison(bytes int) { c.ns += 45 * bytes }
