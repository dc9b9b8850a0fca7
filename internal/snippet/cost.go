package snippet

const (
	// MaxCode is the largest snippet in bytes. Beyond it a program should come as a file.
	// The reader knows how deep JavaScript nests before esbuild sees it.
	MaxCode = 256 << 10

	// maxTyped is the largest one that is TypeScript or JSX. A byte takes esbuild up to
	// 4 KiB of stack, for code like !!!!! or {{{{{, and Go ends the process at 512 MiB of it:
	// 128 KiB of code pass, 192 KiB don't (esbuild 0.28, Go 1.26, amd64). At half of what
	// passes no nesting that the scanner overlooks can do that.
	maxTyped = 64 << 10

	// maxNesting bounds recursion, ours and that of esbuild behind us: with 4 KiB a level
	// this many take 4 MiB of stack.
	maxNesting = 1000

	// maxMembers is for chains like a.b.c, which esbuild goes down by recursion too.
	maxMembers = 5000

	// maxCost is the time that esbuild may take, as it's estimated beforehand.
	maxCost = 400e6 // ns
)

const (
	nestedTooDeeply = "the code is nested too deeply"
	ambiguousSlash  = "this slash may divide or begin a regular expression: add parentheses"
	tooComplex      = "the code is too complex: parts of it repeat or nest too often"
)

// effort estimates the time that esbuild takes beyond what grows with the size alone. Its
// costs were measured with code that has nothing but what costs; other code, even at the
// same depth, takes a tenth of it.
type cost struct {
	ns     int
	depth  int
	scopes int // of these levels may declare names
}

// find is a name's, which is looked for in all scopes around it.
func (c *cost) addLookup() { c.ns += 250 * c.depth }

// rename is the same where names are kept: to tell one that is declared in each scope from
// all the others, esbuild tries as many numbers as there are scopes, in all of them.
func (c *cost) addRename(more int) { c.ns += 46 * (c.scopes + more) * (c.scopes + more) }

// sequence is that of the commas of one expression, which is simplified once for each.
func (c *cost) addSequence(commas int) { c.ns += 27 * commas * commas }

// message is that of telling the lines of two places so many bytes apart.
func (c *cost) addDiagnostic(bytes int) { c.ns += 5 * bytes }

// compare is that of looking, at each <, for type arguments in the bytes that follow.
func (c *cost) addComparison(bytes int) { c.ns += 45 * bytes }
