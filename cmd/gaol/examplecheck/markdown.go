package examplecheck

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"gaol/internal/lazyregexp"
	"gaol/runtime/snippets"
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

// languages maps the languages of examples to the extensions of their files.
var languages = map[string]string{
	"ts": ".ts", "typescript": ".ts", "mts": ".ts", "tsx": ".tsx",
	"js": ".js", "javascript": ".js", "mjs": ".js", "jsx": ".jsx",
}

// fenceInfo is the parsed info string of a fence, such as
//
//	ts run example=counter file=src/main.ts error="too large"
type fenceInfo struct {
	ending string            // of the language; "" if it is not JavaScript or TypeScript
	words  map[string]string // the values of the words; words of other tools are ignored
}

// parseInfo parses an info string: a language, and words, of which some have values. Values
// with blanks have quotes. Of equal words, the first one counts.
func parseInfo(text string) fenceInfo {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == '{' })
	if end < 0 {
		end = len(text)
	}
	info := fenceInfo{languages[strings.ToLower(text[:end])], map[string]string{}}
	for _, m := range slices.Backward(word().FindAllStringSubmatch(text[end:], -1)) {
		if m[0] != "" && m[1] == "" {
			info.words[m[2]] = m[5] + escaped().ReplaceAllString(m[3]+m[4], "$1")
		}
	}
	return info
}

// word matches marks of highlighted lines such as {1, 3}, or a name and its value, in double quotes, in single quotes or
// without. In quotes, a backslash precedes a quote or a backslash that is part of the value.
var (
	word    = lazyregexp.New(`(\{[^}]*)\}?|([^ \t=]*)(?:=(?:"((?:[^"\\]|\\.)*)"?|'((?:[^'\\]|\\.)*)'?|([^ \t]*)))?`)
	escaped = lazyregexp.New(`\\(.)`)
)

// pageExamples returns the examples of a page. Fences with the same example=NAME are one
// example, and its fences of the same file are joined in order.
func pageExamples(p page, allFences bool) (list []*Example) {
	named := map[string]*Example{}
	unnamed := 0
	for _, f := range p.fences() {
		if _, run := f.info.words["run"]; f.info.ending == "" || !run && !allFences {
			continue
		}
		name := f.info.words["example"]
		e := named[name]
		if e == nil {
			e = newExample(p.folder, p.path, f.line)
			e.Name = name
			list = append(list, e)
		}
		if name != "" {
			named[name] = e
		} else {
			unnamed++
			e.Name = fmt.Sprintf("#%d", unnamed)
		}
		e.addFence(f)
	}
	for _, e := range list {
		if _, ok := e.sources[mainFile]; !ok && e.Fault == "" {
			e.Fault = "no fence contains the file " + mainFile + ": give the fences of an example the same example=NAME"
		}
	}
	return list
}

// addFence adds a fence to its example.
func (e *Example) addFence(f fence) {
	e.setAttributes(f.info)
	name := mainFile
	if file, ok := f.info.words["file"]; ok {
		name = file
	}
	at := slices.IndexFunc(e.Files, func(f snippets.File) bool { return f.Path == name })
	if at < 0 {
		e.add(name, f.code, source{file: e.File, lines: f.lines})
		return
	}
	e.Files[at].Source += f.code
	e.sources[name] = source{file: e.File, lines: append(e.sources[name].lines, f.lines...)}
}

// setAttributes applies the attributes of a fence to its example.
func (e *Example) setAttributes(i fenceInfo) {
	if reason, ok := i.words["skip"]; ok {
		if e.Skip = strings.TrimSpace(reason); e.Skip == "" {
			e.Fault = `skip needs a reason: skip="needs a browser"`
		}
	}
	if text, ok := i.words["error"]; ok {
		e.WantError, e.ErrorText = true, text
	}
	for _, name := range []string{"example", "file"} {
		if value, ok := i.words[name]; ok && value == "" {
			e.Fault = name + " needs a value: " + name + "=NAME"
		}
	}
	if strings.HasPrefix(i.words["example"], "#") {
		e.Fault = "the name of an example begins with no #"
	}
}
