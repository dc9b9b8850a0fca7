package examplecheck

import (
	"bytes"
	"strings"
	"unicode/utf16"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// page is a Markdown or MDX file.
type page struct {
	folder *folder
	path   string // in folder
	text   []byte
	mdx    bool
}

// fence is a fenced code block.
type fence struct {
	info  fenceInfo
	line  int // of its opening
	code  string
	lines []place
}

// Only blocks are parsed, because fences are blocks. MDX supports neither HTML nor indented code,
// and its fences may be indented.
var (
	markdownParser = parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...))
	mdxParser      = parser.NewParser(parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(mdxFenceParser{parser.NewFencedCodeBlockParser()}, 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	))
)

// fences returns the fences of a page.
func (p page) fences() (list []fence) {
	line, counted := 1, 0                                                             // the lines before an offset
	_ = ast.Walk(p.parse(), func(n ast.Node, entering bool) (ast.WalkStatus, error) { // no error is returned
		if block, ok := n.(*ast.FencedCodeBlock); ok && entering && block.Info != nil {
			start := block.Info.Segment.Start
			line += bytes.Count(p.text[counted:start], []byte("\n"))
			counted = start
			list = append(list, p.fence(block, line))
		}
		return ast.WalkContinue, nil
	})
	return list
}

func (p page) parse() ast.Node {
	if p.mdx {
		return mdxParser.Parse(text.NewReader(withoutComments(p.text)))
	}
	return markdownParser.Parse(text.NewReader(p.text))
}

func (p page) fence(n *ast.FencedCodeBlock, line int) fence {
	f := fence{info: parseInfo(string(n.Info.Segment.Value(p.text))), line: line}
	var code strings.Builder
	for i, s := range n.Lines().Sliced(0, n.Lines().Len()) {
		code.Write(s.Value(p.text))
		before := string(p.text[bytes.LastIndexByte(p.text[:s.Start], '\n')+1 : s.Start])
		f.lines = append(f.lines, place{line + 1 + i, max(0, len(utf16.Encode([]rune(before)))-s.Padding)})
	}
	f.code = code.String()
	return f
}
