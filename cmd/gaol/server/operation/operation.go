package operation

import (
	"cmp"
	"context"
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/service"
	"gaol/internal/lazyregexp"
	"gaol/internal/schema"
	"gaol/internal/session"
	"gaol/runtime/resultjson"
)

// Operation describes an operation.
type Operation struct {
	Name    string // in sessions, and the operationId of OpenAPI
	Summary string
	Doc     string
	Tag     string // the kind of its subject

	// Method and Path are for HTTP. Names in braces are fields of the input. Without a method, only
	// sessions have the operation.
	Method, Path string

	// Query puts the input into the query of HTTP. Otherwise it is the body, which may be
	// missing if BodyOptional is true.
	Query, BodyOptional bool

	Status   int      // of success by HTTP; zero: 200, and 204 without output
	BadInput int      // the status of input that the schema does not allow; zero: 422
	MaxBody  int64    // bytes; zero: the default of the API
	Upload   []string // media types of data that the request carries
	Download string   // the media type of data that HTTP returns instead of the result
	Trailer  string   // the header of HTTP that follows the data and has the result; empty: there is none
	Events   []EventType

	// EventsOnly sends events to every client of HTTP. A client that has got all of them gets no content.
	EventsOnly bool

	// Output is the type of the result, nil if there is none. Brief, if not nil, returns the part of
	// a result that clients get by HTTP if they want no events, and Output is its type then.
	Output reflect.Type
	Brief  func(any) any

	// Fields are the fields of the input type that requests may have. Nil: all.
	Fields []string

	// Set by New: the input, and the fields of it that are in the path by HTTP.
	Input      *schema.Input
	PathFields []PathField

	do func(context.Context, *Call, any) (any, error)

	// unawaited is for operations that may last as long as a program, or that can be performed while the server is
	// being stopped: it does not wait for them.
	unawaited bool
}

// EventType is a kind of event with an example of its data.
type EventType struct {
	Name service.EventName
	Data any
	Doc  string
}

// Call is a request to perform an operation.
type Call = service.Call

// Do performs the operation on an input of [Operation.Decode]. The result may be present in spite of an
// error: that of a run that was canceled.
func (o *Operation) Do(ctx context.Context, c *Call, in any) (any, error) {
	if s, ok := in.(inSandbox); ok {
		audit.Of(ctx).SetSandbox(s.InSandboxID())
	}
	return o.do(ctx, c, in)
}

// ofService returns an operation of the table: a method of the service.
func ofService[In, Out any](o Operation, do func(*service.Service, context.Context, *Call, *In) (Out, error)) *Operation {
	return performed(o, func(ctx context.Context, c *Call, in *In) (Out, error) { return do(c.Service, ctx, c, in) })
}

// ofSandbox returns an operation of a sandbox of the tenant, which does not expire meanwhile.
func ofSandbox[In, Out any, Input interface {
	*In
	inSandbox
}](o Operation, do func(*service.Sandbox, context.Context, *Call, *In) (Out, error)) *Operation {
	return performed(o, func(ctx context.Context, c *Call, in *In) (out Out, err error) {
		sb, err := c.Service.Acquire(ctx, c.Tenant, Input(in).InSandboxID())
		if err != nil {
			return out, err
		}
		defer sb.Release()
		return do(sb, ctx, c, in)
	})
}

// ofPart returns an operation of a process or a context in a sandbox, which find returns for an ID.
func ofPart[Part, In, Out any, Input interface {
	*In
	inSandbox
	InPartID() string
}](o Operation, find func(*service.Sandbox, string) (Part, error), do func(Part, context.Context, *Call, *In) (Out, error)) *Operation {
	return ofSandbox[In, Out, Input](o, func(sb *service.Sandbox, ctx context.Context, c *Call, in *In) (out Out, err error) {
		part, err := find(sb, Input(in).InPartID())
		if err != nil {
			return out, err
		}
		return do(part, ctx, c, in)
	})
}

// inTurn returns a method that waits for a slot of the tenant.
func inTurn[Of, In, Out any](k quota.Kind, do func(Of, context.Context, *Call, *In) (Out, error)) func(Of, context.Context, *Call, *In) (Out, error) {
	return func(of Of, ctx context.Context, c *Call, in *In) (out Out, err error) {
		done, err := c.Service.Account(c.Tenant).Wait(ctx, k)
		if err != nil {
			return out, err
		}
		defer done()
		return do(of, ctx, c, in)
	}
}

// performed returns an operation of the table. The server waits for its end unless it is unawaited, and its errors are of
// package service.
func performed[In, Out any](o Operation, do func(context.Context, *Call, *In) (Out, error)) *Operation {
	return New(registry, o, func(ctx context.Context, c *Call, in *In) (out Out, err error) {
		if !o.unawaited {
			var end func()
			if ctx, end, err = c.Service.Begin(ctx); err != nil {
				return out, err
			}
			defer end()
		}
		if paths, ok := any(in).(interface{ MergePaths() error }); ok {
			if err := paths.MergePaths(); err != nil {
				return out, service.Refuse(service.Invalid, "%w", err)
			}
		}
		if out, err = do(ctx, c, in); err != nil {
			err = c.Service.Convert(ctx, o.Name, c.Tenant, err)
		}
		return out, err
	})
}

// New completes the description of an operation, whose types become a part of set. The result type [service.None] means no
// output. Doors define further operations as compositions of the table's.
func New[In, Out any](set *schema.Set, o Operation, do func(context.Context, *Call, *In) (Out, error)) *Operation {
	o.Input = set.Input(reflect.TypeFor[In](), o.Name, o.Fields...)
	for _, m := range pathName().FindAllStringSubmatch(o.Path, -1) {
		o.PathFields = append(o.PathFields, PathField{m[1], cmp.Or(fieldOf[m[1]], m[1])})
	}
	if o.Output == nil && reflect.TypeFor[Out]() != reflect.TypeFor[service.None]() {
		o.Output = reflect.TypeFor[Out]()
	}
	o.do = func(ctx context.Context, c *Call, in any) (any, error) {
		out, err := do(ctx, c, in.(*In))
		if v := reflect.ValueOf(&out).Elem(); o.Output == nil || v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, err
		}
		return out, err
	}
	return &o
}

// inSandbox is an input with the name of a sandbox.
type inSandbox interface{ InSandboxID() string }

// All returns the operations. It describes them on first use: that takes some milliseconds, which other
// commands save.
var All = sync.OnceValue(func() []*Operation {
	var all []*Operation
	defer CompleteSchemas(registry)
	for _, group := range []struct {
		tag string
		of  []*Operation
	}{
		{"run", runs()}, {"batch", batchRuns()}, {"sandboxes", sandboxes()}, {"processes", processes()}, {"contexts", contexts()}, {"files", files()},
		{"listeners", ports()}, {"snapshots", snapshots()}, {"images", images()}, {"snippets", snippetRuns()}, {"", sessions()},
	} {
		for _, o := range group.of {
			o.Tag = cmp.Or(o.Tag, group.tag)
			all = append(all, o)
		}
	}
	return all
})

// Perform performs an operation of the table, whose result is an R. As with [Operation.Do], there may be one in spite
// of an error.
func Perform[R any](ctx context.Context, c *Call, name string, in any) (result R, err error) {
	out, err := ByName(name).Do(ctx, c, in)
	result, _ = out.(R)
	return result, err
}

// ByName returns the operation with a name, nil if there is none.
func ByName(name string) *Operation { return byName()[name] }

var byName = sync.OnceValue(func() map[string]*Operation {
	m := map[string]*Operation{}
	for _, o := range All() {
		m[o.Name] = o
	}
	return m
})

// registry holds the schemas of all inputs.
var registry = NewSet()

// NewSet returns an empty set that can describe the JSON of results.
func NewSet() *schema.Set {
	s := schema.NewSet()
	RegisterForms(s)
	return s
}

// RegisterForms lets a registry describe the JSON of results.
func RegisterForms(r huma.Registry) {
	for of, form := range resultjson.Forms() {
		r.RegisterTypeAlias(of, form)
	}
}

// PathField is a field of the input that is in the path by HTTP.
type PathField struct{ Name, Field string } // in the path, and in the input

// fieldOf maps names in paths to fields with another name.
var fieldOf = map[string]string{"id": "sandbox"}

var pathName = lazyregexp.New(`\{(\w+)\}`)

// DecodeHost decodes the functions of a session's client. It returns an [*schema.InvalidError] for an invalid text.
func DecodeHost(text []byte) (*session.Host, error) {
	in, err := host().Decode(text, nil)
	if err != nil {
		return nil, err
	}
	return in.(*session.Host), nil
}

var host = sync.OnceValue(func() *schema.Input {
	return schema.NewSet().Input(reflect.TypeFor[session.Host](), "")
})

// InPath reports whether an HTTP request carries the input field in its path. The query carries the other fields if
// o.Query is set, and otherwise the body does.
func (o *Operation) InPath(field string) bool {
	return slices.ContainsFunc(o.PathFields, func(f PathField) bool { return f.Field == field })
}

// HasBody reports whether by HTTP the body has fields of the input.
func (o *Operation) HasBody() bool {
	return !o.Query && len(o.Input.Schema.Properties) > len(o.PathFields)
}

// Decode decodes and checks an input: an object in JSON, and strings from a path and a query. It returns an
// [*schema.InvalidError] for an invalid input.
func (o *Operation) Decode(body []byte, params map[string]string) (any, error) {
	more := map[string]any{}
	var found []error
	for name, text := range params {
		of := o.Input.Schema.Properties[name]
		switch {
		case of == nil:
			more[name] = text // which is unexpected
		case of.Type == huma.TypeString && !utf8.ValidString(text) && o.Input.Schema.Properties[name+bytesSuffix] != nil:
			more[name+bytesSuffix] = base64.StdEncoding.EncodeToString([]byte(text))
		default:
			v, why := parse(of, text)
			if why != "" {
				found = append(found, &huma.ErrorDetail{Message: why, Location: name, Value: text})
				continue
			}
			more[name] = v
		}
	}
	return o.Input.Decode(body, more, found...)
}

// bytesSuffix ends the name of a field with the bytes of the field before it, for text that is not UTF-8.
const bytesSuffix = "Bytes"

// parse parses a parameter of a path or a query, or returns why it is invalid.
func parse(of *huma.Schema, text string) (v any, why string) {
	switch of.Type {
	case huma.TypeInteger:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, "invalid integer"
		}
		return float64(n), ""
	case huma.TypeBoolean:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, "invalid boolean"
		}
		return b, ""
	}
	return text, ""
}

// CompleteSchemas replaces the schemas that package huma cannot derive from their types: a NodeModules has two forms.
func CompleteSchemas(r huma.Registry) {
	for name, object := range r.Map() {
		if strings.HasSuffix(name, "NodeModules") {
			text := &huma.Schema{
				Type: huma.TypeString, MaxLength: object.Properties["hostPath"].MaxLength,
				Description: "A folder of the server's machine, or snapshot:NAME, to show as node_modules in the working directory.",
			}
			s := &huma.Schema{
				Description: "A folder of packages to show read-only. Programs below its parent find the packages.",
				OneOf:       []*huma.Schema{text, object},
			}
			s.PrecomputeMessages()
			r.Map()[name] = s
		}
	}
}
