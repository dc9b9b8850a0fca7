package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"reflect"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// maxText is how many characters of output a result has. Clients cut, or move to a file, what
// exceeds 25,000 tokens or 50,000 characters.
const maxText = 40_000

// extra is the part of a result that its structured content, the fields, lacks. Results embed it.
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

// overflow writes text that is too long for a result to files of the sandbox, and links to them.
type overflow struct {
	ctx     context.Context // of the call
	call    *operation.Call
	sandbox string // empty: one is created for the first file

	extra
}

// fit returns as many characters of a text as a result may have. If that is not all, the whole text
// becomes a file.
func (o *overflow) fit(name, kind, text string, characters int) string {
	shown, more := cut(text, characters)
	if !more {
		return text
	}
	path := "/tmp/gaol-" + strings.ToLower(rand.Text()[:10]) + "-" + name
	if err := o.keep(path, text); err != nil {
		o.note("[%s: only the first %d characters are shown; the rest is lost: %v]", name, characters, err)
		return shown
	}
	size := int64(len(text))
	o.links = append(o.links, &mcp.ResourceLink{URI: fileURI(o.sandbox, path), Name: name, Title: "All of " + name, MIMEType: kind, Size: &size})
	o.note("[%s: only the first %d characters are shown. All %d bytes are in the file %s of sandbox %s: use read_file with an offset]", name, characters, size, path, o.sandbox)
	return shown
}

// keep writes a file to the sandbox, or to a new one.
func (o *overflow) keep(path, text string) error {
	if o.sandbox == "" {
		made, err := operation.Perform[*resultjson.SandboxInfo](o.ctx, o.call, "createSandbox", &requestjson.SandboxRequest{})
		if err != nil {
			return err
		}
		o.sandbox = made.ID
	}
	return writeContent(o.ctx, o.call, inFile(o.sandbox, path), []byte(text))
}

// shares divides the characters of a result between two texts: the second one has at least a quarter
// if it needs that.
func shares(first, second string) (characters, rest int) {
	rest = max(maxText/4, maxText-len(first))
	return maxText - min(len(second), rest), rest
}

// uriScheme begins the URIs of files in sandboxes, which end with the id and the path.
const uriScheme = "gaol://sandbox/"

// fileURI returns the URI of a file in a sandbox.
func fileURI(id, path string) string {
	return uriScheme + id + (&url.URL{Path: path}).EscapedPath()
}

// parseURI returns the sandbox and the path of a URI.
func parseURI(uri string) (id, path string, ok bool) {
	rest, ok := strings.CutPrefix(uri, uriScheme)
	if !ok {
		return "", "", false
	}
	id, escaped, ok := strings.Cut(rest, "/")
	path, err := url.PathUnescape("/" + escaped)
	return id, path, ok && err == nil
}

// maxNamed bounds the sandboxes or processes that an error names.
const maxNamed = 10

// explain adds advice for a model to an error of a call with some arguments.
func explain(ctx context.Context, c *operation.Call, in any, err error) error {
	failed, ok := errors.AsType[*service.Error](err)
	if !ok {
		return err
	}
	advice := ""
	switch {
	case errors.Is(err, fs.ErrNotExist) && failed.Code == service.NotFound:
		advice = "list_files shows what exists"
	case errors.Is(err, syscall.EISDIR):
		advice = "Use list_files"
	case failed.Code == service.NotFound:
		advice = known(ctx, c, in)
	case failed.Code == service.Closed:
		advice = "Create a new one"
	case failed.Code == service.Exceeded && failed.RetryAfter > 0:
		advice = fmt.Sprintf("Close sandboxes that are no longer needed with close_sandbox, or try again in %d s", int(math.Ceil(failed.RetryAfter.Seconds())))
	default:
		return err
	}
	return fmt.Errorf("%w. %s", err, advice)
}

// known lists the newest processes of the sandbox of a call about one, or else the newest sandboxes.
func known(ctx context.Context, c *operation.Call, in any) string {
	if p, ok := in.(*processIn); ok {
		if list, err := operation.Perform[service.ProcessList](ctx, c, "listProcesses", new(p.in())); err == nil {
			return newest(list.Processes, func(p *resultjson.ProcessInfo) string { return p.ID }) + "; start one with start_process"
		}
	}
	list, _ := operation.Perform[service.SandboxList](ctx, c, "listSandboxes", &struct{}{}) // empty if it fails
	return newest(list.Sandboxes, func(sb *resultjson.SandboxInfo) string { return sb.ID }) + "; create one with create_sandbox"
}

// newest names the last of a list.
func newest[T any](list []T, id func(T) string) string {
	var ids []string
	for _, v := range list[max(0, len(list)-maxNamed):] {
		ids = append(ids, id(v))
	}
	if ids == nil {
		return "There are none, or they have expired"
	}
	return "Yours are " + strings.Join(ids, ", ")
}

// denial is an operation that permissions denied to a run.
type denial struct {
	runtime.Denial
	AllowWith string `json:"allowWith,omitempty" doc:"The permission or limit of a new sandbox that would allow it, unless the server forbids it."`
}

// denials are the denied operations of a run.
type denials []denial

// argument is the argument that advice about denials names.
const argument = "permissions of create_sandbox"

// ofCreate names the field that raises the limit of a denial.
func ofCreate(d runtime.Denial) string { return d.Rule + " of create_sandbox" }

// newDenials describes the denials of a run in a sandbox: an empty id is a fresh one.
func newDenials(c *operation.Call, sandbox string, list []runtime.Denial) denials {
	described := denials{}
	if len(list) == 0 {
		return described
	}
	advice := flags.Advice{Permissions: c.Service.PermissionsOf(c.Tenant, sandbox), Argument: argument, Accept: c.Service.Allows, Limit: ofCreate}
	for _, d := range list {
		described = append(described, denial{d, advice.For(d)})
	}
	return described
}

// String describes the first ones, a line each.
func (list denials) String() string {
	var lines strings.Builder
	for i, d := range list {
		if i == flags.MaxDenials {
			fmt.Fprintf(&lines, "denied: %d more", len(list)-i)
			break
		}
		lines.WriteString(flags.DenialText(d.Denial))
		if d.AllowWith != "" {
			lines.WriteString("; allow with " + d.AllowWith)
		}
		lines.WriteByte('\n')
	}
	return lines.String()
}
