package examplecheck

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

func prioritized(p parser.BlockParser, priority int) util.PrioritizedValue {
	return util.Prioritized(p, priority)
}

// mdxFenceParser parses fences of MDX: they may be indented by any number of blanks,
// because elements of JSX are.
type mdxFenceParser struct{}

// mdxFence is the state of an open fence.
type mdxFence struct {
	mark   byte
	length int
	indent int
}

var mdxFenceKey = parser.NewContextKey()

func (mdxFenceParser) Trigger() []byte { return []byte("`~") }

func (mdxFenceParser) Open(_ ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, segment := reader.PeekLine()
	pos := pc.BlockOffset()
	if pos < 0 {
		return nil, parser.NoChildren
	}
	mark := line[pos]
	length := len(line[pos:]) - len(bytes.TrimLeft(line[pos:], string(mark)))
	info := bytes.TrimSpace(line[pos+length:])
	if length < 3 || mark == '`' && bytes.IndexByte(info, '`') >= 0 {
		return nil, parser.NoChildren
	}
	var node ast.Node = ast.NewFencedCodeBlock(nil)
	if len(info) > 0 {
		start := segment.Start - segment.Padding + bytes.Index(line[pos+length:], info) + pos + length
		node = ast.NewFencedCodeBlock(ast.NewTextSegment(text.NewSegment(start, start+len(info))))
	}
	pc.Set(mdxFenceKey, mdxFence{mark, length, pc.BlockIndent()})
	return node, parser.NoChildren
}

func (mdxFenceParser) Continue(node ast.Node, reader text.Reader, pc parser.Context) parser.State {
	line, segment := reader.PeekLine()
	f, _ := pc.Get(mdxFenceKey).(mdxFence)
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) >= f.length && len(bytes.TrimLeft(trimmed, string(f.mark))) == 0 {
		reader.AdvanceToEOL()
		return parser.Close
	}
	pos, padding := util.IndentPositionPadding(line, reader.LineOffset(), segment.Padding, f.indent)
	if pos < 0 { // less indented than the fence
		pos, padding = max(0, util.FirstNonSpacePosition(line))-segment.Padding, 0
	}
	s := text.NewSegmentPadding(segment.Start+pos, segment.Stop, padding)
	s.ForceNewline = true // the last line of a file may have none
	node.Lines().Append(s)
	reader.AdvanceToEOL()
	return parser.Continue | parser.NoChildren
}

func (mdxFenceParser) Close(ast.Node, text.Reader, parser.Context) {}
func (mdxFenceParser) CanInterruptParagraph() bool                 { return true }
func (mdxFenceParser) CanAcceptIndentedLine() bool                 { return true }

// mdxBlock is code of an MDX page that spans lines: an import or an export, an expression in
// braces, or a tag. Fences in it, such as fences in a comment, are not fences of the page.
type mdxBlock struct {
	ast.BaseBlock
	start int // its offset
	state mdxScanner
}

var mdxKind = ast.NewNodeKind("MDX")

// Kind returns the kind of all blocks of MDX code.
func (*mdxBlock) Kind() ast.NodeKind { return mdxKind }

// Dump prints the block for debugging.
func (b *mdxBlock) Dump(source []byte, level int) { ast.DumpHelper(b, source, level, nil, nil) }

func (b *mdxBlock) closed() bool { return b.state.closed() }

// mdxBlockParser parses blocks of MDX code. It leaves blocks of one line to the parser of
// paragraphs: a fence may follow them.
type mdxBlockParser struct{}

func (mdxBlockParser) Trigger() []byte { return nil }

func (mdxBlockParser) Open(_ ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, segment := reader.PeekLine()
	pos := pc.BlockOffset()
	if pos < 0 {
		return nil, parser.NoChildren
	}
	b := &mdxBlock{start: segment.Start - segment.Padding + pos}
	switch code := line[pos:]; {
	case code[0] == '{':
	case code[0] == '<' && len(code) > 1 && (isNameByte(code[1]) || code[1] == '>'):
		b.state.tag = true
	case bytes.HasPrefix(code, []byte("import ")), bytes.HasPrefix(code, []byte("export ")):
		b.state.module = true
	default:
		return nil, parser.NoChildren
	}
	b.state.scan(line[pos:])
	if b.state.closed() && !b.state.module {
		return nil, parser.NoChildren
	}
	reader.AdvanceToEOL()
	return b, parser.NoChildren
}

func (mdxBlockParser) Continue(node ast.Node, reader text.Reader, _ parser.Context) parser.State {
	b, _ := node.(*mdxBlock)
	line, _ := reader.PeekLine()
	if b.closed() && (!b.state.module || util.IsBlank(line)) {
		return parser.Close
	}
	b.state.scan(line)
	reader.AdvanceToEOL()
	return parser.Continue | parser.NoChildren
}

func (mdxBlockParser) Close(ast.Node, text.Reader, parser.Context) {}
func (mdxBlockParser) CanInterruptParagraph() bool                 { return true }
func (mdxBlockParser) CanAcceptIndentedLine() bool                 { return true }

func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '$'
}

// mdxScanner finds the end of code in an MDX page. It knows brackets, strings and comments, and
// no more of JavaScript.
type mdxScanner struct {
	module bool // import or export, which also ends at a blank line
	tag    bool // a tag, which ends at its >

	depth   int  // of open brackets
	quote   byte // of the open string: ', " or `; or 0
	comment bool // in /* */
	done    bool // the tag, or the expression, has ended
}

// closed reports whether the code may end here.
func (s *mdxScanner) closed() bool {
	if s.module {
		return s.depth <= 0 && s.quote == 0 && !s.comment
	}
	return s.done
}

// scan continues with a line.
func (s *mdxScanner) scan(line []byte) {
	for i := 0; i < len(line) && !s.done; i++ {
		var next byte
		if i+1 < len(line) {
			next = line[i+1]
		}
		switch b := line[i]; {
		case s.comment:
			if s.comment = b != '*' || next != '/'; !s.comment {
				i++
			}
		case s.quote != 0:
			i += s.inString(b)
		case b == '/' && next == '*' && s.isCode():
			s.comment = true
			i++
		case b == '/' && next == '/' && s.isCode():
			i = len(line)
		default:
			s.inCode(b)
		}
	}
	if s.isCode() && s.quote != '`' { // only strings of JSX and templates continue in the next line
		s.quote = 0
	}
}

// isCode reports whether the scanner is in JavaScript, and not among the attributes of a tag.
func (s *mdxScanner) isCode() bool { return s.module || s.depth > 0 }

// inString continues in a string, and returns how many further bytes to skip.
func (s *mdxScanner) inString(b byte) int {
	switch {
	case b == s.quote:
		s.quote = 0
	case b == '\\' && s.isCode():
		return 1
	}
	return 0
}

func (s *mdxScanner) inCode(b byte) {
	switch b {
	case '\'', '"':
		s.quote = b
	case '`':
		if s.isCode() {
			s.quote = b
		}
	case '{', '(', '[':
		s.depth++
	case '}', ')', ']':
		s.depth--
		s.done = s.depth <= 0 && !s.tag && !s.module
	case '>':
		s.done = s.tag && s.depth <= 0
	}
}
