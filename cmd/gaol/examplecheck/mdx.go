package examplecheck

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"gaol/internal/lazyregexp"
)

// mdxFenceParser parses fences of MDX: they may be indented by any number of blanks,
// because elements of JSX are.
type mdxFenceParser struct{ parser.BlockParser }

var mdxFenceKey = parser.NewContextKey()

func (p mdxFenceParser) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, _ := reader.PeekLine()
	node, state := p.BlockParser.Open(parent, reader, pc)
	if node != nil {
		line = line[pc.BlockOffset():]
		pc.Set(mdxFenceKey, line[:len(line)-len(bytes.TrimLeft(line, string(line[:1])))])
	}
	return node, state
}

func (p mdxFenceParser) Continue(node ast.Node, reader text.Reader, pc parser.Context) parser.State {
	line, _ := reader.PeekLine()
	marks, _ := pc.Get(mdxFenceKey).([]byte)
	line = bytes.TrimSpace(line)
	if bytes.HasPrefix(line, marks) && len(bytes.TrimLeft(line, string(marks[:1]))) == 0 {
		reader.AdvanceToEOL()
		return parser.Close
	}
	return p.BlockParser.Continue(node, reader, pc)
}

func (mdxFenceParser) CanAcceptIndentedLine() bool { return true }

// mdxComment matches comments of MDX.
var mdxComment = lazyregexp.New(`\{\s*/\*(?:[^*]|\*+[^*/])*\*+/\s*\}`)

// withoutComments returns an MDX page with spaces for its comments: fences in them are not rendered.
func withoutComments(page []byte) []byte {
	return mdxComment().ReplaceAllFunc(page, func(comment []byte) []byte {
		for i, b := range comment {
			if b != '\n' {
				comment[i] = ' '
			}
		}
		return comment
	})
}
