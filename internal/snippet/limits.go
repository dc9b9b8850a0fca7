package snippet

const (
	// MaxCode is the maximum size of a snippet in bytes; larger programs should be files.
	MaxCode = 256 << 10

	// maxNesting bounds the recursion of the parser.
	maxNesting = 1000

	// maxMembers bounds chains like a.b.c, for which esbuild also recurses.
	maxMembers = 5000
)

const nestedTooDeeply = "the code is nested too deeply"
