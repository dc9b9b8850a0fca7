package snippet

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/evanw/esbuild/pkg/api"

	"gaol/internal/lazyregexp"
)

// maxBlocks is the maximum number of code blocks in Markdown.
const maxBlocks = 64

// fence is a line of Markdown that starts or ends a block of code.
type fence struct {
	span              // the line with its end
	prefix     string // the text before it, which the lines of the block repeat
	item       bool   // it starts a list item
	closesOnly bool   // a tag such as </answer> follows: it starts no block
	count      int
	mark       byte
	info       string
}

// codeBlock is a fenced block of code.
type codeBlock struct {
	content  span
	prefix   string // its fence's prefix, removed from its lines
	mark     byte
	language string
}

// languages are the names of JavaScript, TypeScript and JSX after a fence.
var languages = setOf("js", "javascript", "mjs", "cjs", "jsx", "node", "nodejs", "ecmascript", "es6", "ts", "typescript", "mts", "cts", "tsx")

// markdown compiles the blocks of code in Markdown as one program.
func (c *compiler) markdown(d draft, fences []fence) (parsed, bool) {
	all := blocksOf(d.text, fences)
	blocks, err := c.selectBlocks(d, all)
	if err != nil {
		c.err = err
		return parsed{}, false
	}
	p, ok, err := c.blocks(d, blocks...)
	if !ok {
		p, ok = c.compileToLastFence(d, fences, blocks[0])
	}
	c.err = err
	return p, ok
}

// blocks compiles blocks of code as one program.
func (c *compiler) blocks(d draft, blocks ...codeBlock) (parsed, bool, *SyntaxError) {
	inner := compiler{module: c.module}
	p, ok := inner.code(extract(d, blocks))
	return p, ok, inner.err
}

// compileToLastFence extends a block to the last fence that may close it. A comment in the
// code may contain fences.
func (c *compiler) compileToLastFence(d draft, fences []fence, b codeBlock) (parsed, bool) {
	end := b.content.end
	for _, f := range fences {
		if f.mark == b.mark && f.canClose(b.prefix) && f.start > end {
			end = f.start
		}
	}
	if end == b.content.end {
		return parsed{}, false
	}
	b.content.end = end
	p, ok, _ := c.blocks(d, b)
	return p, ok
}

// selectBlocks returns the blocks marked as JavaScript, TypeScript or JSX, and unmarked blocks
// of valid code.
func (c *compiler) selectBlocks(d draft, all []codeBlock) ([]codeBlock, *SyntaxError) {
	if len(all) > maxBlocks {
		return nil, d.errorAt(all[maxBlocks].content.start, fmt.Sprintf("there are %d blocks of code, the limit is %d", len(all), maxBlocks))
	}
	var chosen, silent []codeBlock
	for _, b := range all {
		if b.language == "" {
			silent = append(silent, b)
			if len(all) > 1 {
				if _, valid, _ := c.blocks(d, b); !valid {
					continue
				}
			}
		} else if !languages[b.language] {
			continue
		}
		chosen = append(chosen, b)
	}
	switch {
	case len(chosen) > 0:
		return chosen, nil
	case len(silent) > 0:
		return silent, nil
	}
	return nil, d.errorAt(all[0].content.start, fmt.Sprintf("the Markdown has code blocks of %s, but none of JavaScript, TypeScript or JSX", all[0].language))
}

// extract keeps the positions of the blocks, and only the line ends of everything else. A
// semicolon separates the blocks.
func extract(d draft, blocks []codeBlock) draft {
	var edits []edit
	last := 0
	for i, b := range blocks {
		between := lineEnds(d.text[last:b.content.start])
		if i > 0 {
			between = ";" + between
		}
		edits = append(edits, replace(span{last, b.content.start}, between))
		edits = append(edits, d.unindent(b)...)
		last = b.content.end
	}
	edits = append(edits, replace(span{last, len(d.text)}, lineEnds(d.text[last:])))
	return d.edit(edits)
}

// unindent removes the fence's prefix from the lines of the block, and hides a shebang in the first.
func (d draft) unindent(b codeBlock) []edit {
	var edits []edit
	at := b.content.start
	for line := range strings.Lines(d.text[at:b.content.end]) {
		n := 0
		for n < min(len(b.prefix), len(line)) && line[n] == b.prefix[n] {
			n++
		}
		if n > 0 {
			edits = append(edits, replace(span{at, at + n}, ""))
		}
		if at == b.content.start {
			edits = append(edits, d.hideShebang(span{at + n, b.content.end})...)
		}
		at += len(line)
	}
	return edits
}

// blocksOf pairs fences by the rules of CommonMark, except that indented code blocks,
// which could hide a fence, do not exist.
func blocksOf(text string, fences []fence) []codeBlock {
	var blocks []codeBlock
	var open *fence
	for i := range fences {
		f := &fences[i]
		switch {
		case open == nil && f.closesOnly:
		case open == nil:
			open = f
		case f.mark == open.mark && f.count >= open.count && f.canClose(open.prefix):
			blocks = append(blocks, open.block(f.start))
			open = nil
		}
	}
	if open != nil {
		blocks = append(blocks, open.block(len(text)))
	}
	return blocks
}

func (f *fence) block(end int) codeBlock {
	return codeBlock{span{f.end, end}, f.prefix, f.mark, languageOf(f.info)}
}

// canClose reports whether a fence may close a block with this prefix: it must be in the
// same block quotes, and not much deeper.
func (f *fence) canClose(prefix string) bool {
	return f.info == "" && !f.item && len(f.prefix) <= len(prefix)+3 && strings.Count(f.prefix, ">") == strings.Count(prefix, ">")
}

// languageOf returns the first word after a fence: js, {.js}, js:main.js, JS title="a".
func languageOf(info string) string {
	info = strings.ToLower(strings.TrimLeft(info, "{. \t"))
	if end := strings.IndexFunc(info, func(r rune) bool {
		return !strings.ContainsRune("+#_$\\", r) && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}); end >= 0 {
		info = info[:end]
	}
	return info
}

// findFences returns the lines that are fences, as if none were inside a block. The first
// one starts a block.
func findFences(text string) []fence {
	var fences []fence
	start := 0
	for line := range strings.Lines(text) {
		end := start + len(line)
		if f, ok := parseFence(line); ok && (!f.closesOnly || len(fences) > 0) {
			f.span = span{start, end}
			fences = append(fences, f)
		}
		start = end
	}
	return fences
}

func parseFence(line string) (fence, bool) {
	if !hasMarks(line) {
		return fence{}, false
	}
	parts := fenceMarks().FindStringSubmatch(line)
	if parts == nil {
		return fence{}, false
	}
	rest := line[len(parts[0])-len(parts[1]):]
	f := fence{prefix: strings.TrimSuffix(parts[0], parts[1]), mark: rest[0]}
	f.item = strings.ContainsAny(f.prefix, "-+.)")
	if f.item {
		f.prefix = strings.Map(func(r rune) rune {
			if r == '>' || r == '\t' {
				return r
			}
			return ' '
		}, f.prefix)
	}
	f.info = strings.TrimLeft(rest, rest[:1])
	f.count = len(rest) - len(f.info)
	f.info = strings.TrimSpace(f.info)
	if f.closesOnly = strings.HasPrefix(f.info, "</"); f.closesOnly {
		f.info = ""
	}
	return f, f.mark == '~' || !strings.Contains(f.info, "`")
}

// fencePrefix is the text that may precede a fence: spaces and the markers of block quotes
// and list items. An asterisk is not accepted, because lines of comments start with it.
var fencePrefix = lazyregexp.New(fencePrefixPattern)

const fencePrefixPattern = `^(?:[ \t>]|[-+] |[0-9]{1,9}[.)] )*`

// fenceAt reports whether the mark at an offset is a fence: whether it starts a line.
func fenceAt(code string, at int, mark string) bool {
	if !strings.HasPrefix(code[at:], mark) {
		return false
	}
	start := strings.LastIndexByte(code[:at], '\n') + 1
	return fencePrefix().FindString(code[start:at]) == code[start:at]
}

// fenceMarks matches the marks of fences, as submatches.
var fenceMarks = lazyregexp.New("(?m)" + fencePrefixPattern + "(```|~~~)")

// hasMarks reports whether a text may have fences. Most have none, which saves the cost of a regular expression.
func hasMarks(text string) bool {
	return strings.Contains(text, "```") || strings.Contains(text, "~~~")
}

const markdownInCode = "this line starts a code block of Markdown: pass only the code"

// findFence returns an error for the first fence outside comments, strings and templates. To esbuild it would be a
// template that is called with an element, or text between tags, which is valid. It reports the text that replaces
// the marks here, in all of these places.
func (c *compiler) findFence(d draft, loader api.Loader) *SyntaxError {
	const invalid = "<%%"
	if !hasMarks(d.text) {
		return nil
	}
	var marks []int
	text := []byte(d.text)
	for _, m := range fenceMarks().FindAllStringSubmatchIndex(d.text, -1) {
		if at := m[2]; text[at] == '`' || loader == api.LoaderTSX || loader == api.LoaderJSX { // elsewhere, tildes are operators
			marks = append(marks, at)
			copy(text[at:], invalid)
		}
	}
	if marks == nil {
		return nil
	}
	probe := draft{text: string(text)}
	result, _ := c.transform(probe, api.TransformOptions{Loader: loader})
	for _, m := range result.Errors {
		for _, at := range marks {
			if n := probe.offset(m) - at; n >= 0 && n < len(invalid) {
				return d.errorAt(at, markdownInCode)
			}
		}
	}
	return nil
}

// singleLineBlock returns the code of ```js 1 + 1```, if that is the whole text.
func singleLineBlock(text string) (codeBlock, bool) {
	start := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	end := len(strings.TrimRight(text, " \t\r\n"))
	const mark = "```"
	if end-start <= 2*len(mark) || !fenceAt(text, start, mark) || !strings.HasSuffix(text[:end], mark) {
		return codeBlock{}, false
	}
	b := codeBlock{content: span{start + len(mark), end - len(mark)}, mark: '`'}
	code := text[b.content.start:b.content.end]
	if strings.Contains(code, mark) || code[0] == mark[0] || hasLineEnd(code) {
		return codeBlock{}, false
	}
	if language, _, spaced := strings.Cut(code, " "); spaced && languages[strings.ToLower(language)] {
		b.content.start += len(language)
	}
	return b, true
}
