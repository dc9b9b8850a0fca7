package mcpserver

import (
	"fmt"
	"reflect"
	"strings"

	"gaol/cmd/gaol/report"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxText is how many characters of output a result has. Clients cut, or move to a file, what
// exceeds 25,000 tokens or 50,000 characters.
const maxText = 40_000

// extra is what a result has besides its fields, which are its structured content. Results embed it.
type extra struct {
	notes  []string      // lines at the end of the text
	links  []mcp.Content // after the text
	failed bool
}

// note adds a line to the text of the result.
func (e *extra) note(format string, args ...any) {
	e.notes = append(e.notes, fmt.Sprintf(format, args...))
}

func (e *extra) extras() *extra { return e }

// newResult returns the result of a call for an output.
func newResult(out any) *mcp.CallToolResult {
	more := &extra{}
	if o, ok := out.(interface{ extras() *extra }); ok {
		more = o.extras()
	}
	res := &mcp.CallToolResult{StructuredContent: out, IsError: more.failed}
	text := strings.Join(append(paragraphs(reflect.ValueOf(out)), more.notes...), "\n")
	if text == "" && len(more.links) == 0 {
		text = "(empty)"
	}
	if text != "" {
		res.Content = append(res.Content, &mcp.TextContent{Text: text})
	}
	res.Content = append(res.Content, more.links...)
	return res
}

// paragraphs returns the text of an output: its fields with a tag text, which is the format of a value, or of each
// element of a list. Zero values are omitted, and false.
func paragraphs(v reflect.Value) (list []string) {
	v = reflect.Indirect(v)
	for i := range v.NumField() {
		value, field := v.Field(i), v.Type().Field(i)
		format, tagged := field.Tag.Lookup("text")
		if !field.IsExported() || value.IsZero() {
			continue
		}
		value = reflect.Indirect(value)
		kind := value.Kind()
		_, isText := value.Interface().(fmt.Stringer)
		switch {
		case !tagged && kind == reflect.Struct:
			list = append(list, paragraphs(value)...)
		case !tagged:
		case kind == reflect.Bool:
			list = append(list, format)
		case kind == reflect.Slice && !isText && value.Type().Elem().Kind() != reflect.Uint8:
			for _, element := range value.Seq2() {
				list = append(list, fmt.Sprintf(format, element))
			}
		default:
			if text := strings.TrimRight(fmt.Sprintf(format, value), "\n"); text != "" {
				list = append(list, text)
			}
		}
	}
	return list
}

// cut returns the first characters of a text, and whether there are more.
func cut(text string, characters int) (string, bool) {
	n := 0
	for at := range text {
		if n == characters {
			return text[:at], true
		}
		n++
	}
	return text, false
}

// oneLine returns the last line of a text that is not empty, with visible control characters, in at most 200 characters.
func oneLine(text string) string {
	text = strings.TrimRight(text, " \r\n\t")
	line, _ := cut(report.OneLine(text[strings.LastIndexByte(text, '\n')+1:]), 200)
	return line
}
