package operation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gaol/internal/session"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/runtime/snippets"
	"gaol/vfs/hostfs"
)

// compareGenerated compares a generated file with its text, or writes it with -update.
func compareGenerated(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: make generate", file)
	}
}

// renamed are types with another name in TypeScript, where all are in one module and some are exported to users.
var renamed = map[reflect.Type]string{
	reflect.TypeFor[runtime.Result]():          "Run",
	reflect.TypeFor[runtime.Connection]():      "OutgoingConnection",
	reflect.TypeFor[runtime.Log]():             "LogLine",
	reflect.TypeFor[resultjson.SandboxUsage](): "ResourceUsage",
	reflect.TypeFor[hostfs.UntarReport]():      "Unpacked",
	reflect.TypeFor[session.Command]():         "CommandDeclaration",
	reflect.TypeFor[session.Function]():        "FunctionDeclaration",
	reflect.TypeFor[snippets.File]():           "SnippetFile",
	reflect.TypeFor[snippets.Output]():         "SnippetOutput",
}

// omitted are fields that sessions never have: frames have the output of runs.
var omitted = map[string]bool{"Run.stdout": true, "Run.stderr": true, "Run.stdoutBytes": true, "Run.stderrBytes": true, "Run.output": true}

// objects are fields whose JSON is an object.
var objects = map[string]bool{"SnippetOutput.facts": true, "SnippetOutput.derived": true}

// writer writes types.
type writer struct {
	out    bytes.Buffer
	shapes bytes.Buffer // of results
	fields bytes.Buffer // names of inputs
	docs   map[string]string
	names  map[string]reflect.Type
}

// result returns the TypeScript of a type of results, and writes the types that it needs.
func (w *writer) result(field string, t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Time]():
		return "Date"
	case reflect.TypeFor[runtime.Launcher](), reflect.TypeFor[netip.AddrPort]():
		return "string"
	case reflect.TypeFor[json.RawMessage]():
		if objects[field] {
			return "Record<string, unknown>"
		}
		return "unknown"
	}
	return w.typeOf(t, false)
}

// input returns the TypeScript of a type of inputs.
func (w *writer) input(field string, t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[requestjson.NodeModules]():
		return "string | " + w.typeOf(t, true)
	case t == reflect.TypeFor[json.RawMessage]():
		return "unknown"
	case t.NumMethod() == 0 && t.Kind() == reflect.Struct && t.NumField() == 0:
		return "object"
	}
	return w.typeOf(t, true)
}

func (w *writer) typeOf(t reflect.Type, input bool) string {
	if enums[t] != nil {
		return w.enum(t)
	}
	if t == reflect.TypeFor[policy.Permissions]() {
		return "Permissions"
	}
	of := w.result
	readonly := ""
	if input {
		of, readonly = w.input, "readonly "
	}
	switch t.Kind() {
	case reflect.Pointer:
		return of("", t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "Uint8Array"
		}
		return readonly + of("", t.Elem()) + "[]"
	case reflect.Map:
		record := "Record<string, " + of("", t.Elem()) + ">"
		if input {
			return "Readonly<" + record + ">"
		}
		return record
	case reflect.Struct:
		return w.object(t, input)
	case reflect.Interface:
		return "unknown"
	}
	return "number"
}

// enum writes a type of strings that may be empty.
func (w *writer) enum(t reflect.Type) string {
	if w.names[t.Name()] == nil {
		w.names[t.Name()] = t
		fmt.Fprintf(&w.out, "%sexport type %s = %s;\n\n", comment("", w.docs[t.Name()]), t.Name(), union(enums[t]))
	}
	if t == reflect.TypeFor[runtime.Cause]() {
		return t.Name() + ` | ""`
	}
	return t.Name()
}

func union(values []string) string { return `"` + strings.Join(values, `" | "`) + `"` }

// nameOf returns the name of a struct.
func nameOf(t reflect.Type) string {
	if name := renamed[t]; name != "" {
		return name
	}
	return strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
}

// object writes a struct as an interface, and returns its name.
func (w *writer) object(t reflect.Type, input bool) string {
	name := nameOf(t)
	if other := w.names[name]; other != nil {
		if other != t {
			panic(fmt.Sprintf("%s and %s have one name in TypeScript", other, t))
		}
		return name
	}
	w.names[name] = t
	var body, shape bytes.Buffer
	var extends []string
	for _, f := range members(t) {
		key := jsonName(f)
		switch {
		case f.Anonymous && key == "":
			extends = append(extends, w.typeOf(cmp.Or(withMethods[f.Type], f.Type), input))
		case f.IsExported() && key != "" && !omitted[name+"."+key]:
			fmt.Fprintf(&body, "%s%s", w.fieldDoc(t, f), w.field(name, f, input))
			of := w.shape(name+"."+key, f.Type)
			if nullable(f) {
				of += "|null"
			}
			fmt.Fprintf(&shape, "%q: %q, ", key+optional(f), of)
		}
	}
	if input {
		fmt.Fprintf(&w.fields, "  %s: %s,\n", name, fieldNames(t))
	} else {
		for _, e := range extends {
			fmt.Fprintf(&shape, "%q: %q, ", "..."+e, e)
		}
		fmt.Fprintf(&w.shapes, "  %s: { %s},\n", name, shape.String())
	}
	head := name
	if len(extends) > 0 {
		head += " extends " + strings.Join(extends, ", ")
	}
	fmt.Fprintf(&w.out, "%sexport interface %s {\n%s}\n\n", comment("", name+strings.TrimPrefix(w.docs[t.PkgPath()+"."+t.Name()], t.Name())), head, body.String())
	return name
}

// withMethods are types by the types without methods that others embed.
var withMethods = map[reflect.Type]reflect.Type{reflect.TypeFor[resultjson.ProcessUsage]().Field(0).Type: reflect.TypeFor[runtime.Usage]()}

// members returns the fields of a struct or of its form in JSON.
func members(t reflect.Type) (list []reflect.StructField) {
	form := resultjson.Forms()[t]
	t = cmp.Or(form, t)
	for i := range t.NumField() {
		if f := t.Field(i); form != nil && f.Anonymous {
			list = append(list, members(f.Type)...)
		} else {
			list = append(list, f)
		}
	}
	return list
}

// field returns a field of an interface.
func (w *writer) field(of string, f reflect.StructField, input bool) string {
	key := jsonName(f)
	kind := ""
	if values := f.Tag.Get("enum"); values != "" {
		kind = union(strings.Split(values, ","))
	} else if input {
		kind = w.input(of+"."+key, f.Type)
	} else {
		kind = w.result(of+"."+key, f.Type)
	}
	mark := optional(f)
	switch {
	case mark != "" && input:
		kind += " | undefined"
	case nullable(f):
		kind += " | null"
	}
	return fmt.Sprintf("  %s%s: %s;\n", key, mark, kind)
}

// fieldNames returns the names of the fields of an object and of the objects in it, or true.
func fieldNames(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[policy.Permissions]() {
		return "true"
	}
	return "{ " + strings.Join(namesOf(t), ", ") + " }"
}

// namesOf returns the names of the fields of a struct. Other than by reflect.VisibleFields, an embedded struct
// does not hide a field of itself with its name.
func namesOf(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		switch key := jsonName(f); {
		case f.Anonymous && key == "":
			names = append(names, namesOf(f.Type)...)
		case key != "" && f.IsExported():
			names = append(names, key+": "+fieldNames(f.Type))
		}
	}
	return names
}

// shape returns the shape of a type of results.
func (w *writer) shape(field string, t reflect.Type) string {
	switch text := w.result(field, t); {
	case text == "Uint8Array":
		return "bytes"
	case text == "Date":
		return "date"
	case text == "unknown":
		return "any"
	case strings.HasPrefix(text, "Record<"):
		return "object"
	case t.Kind() == reflect.String:
		return "string"
	default:
		return text
	}
}

// jsonName returns the name of a field in JSON, empty if it has none.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.TrimPrefix(name, "-")
}

// nullable reports whether a field without a value is null.
func nullable(f reflect.StructField) bool {
	return optional(f) == "" && f.Type.Kind() == reflect.Pointer
}

func optional(f reflect.StructField) string {
	if strings.Contains(f.Tag.Get("json"), ",omit") || f.Tag.Get("required") == "false" {
		return "?"
	}
	return ""
}

// fieldDoc returns the comment of a field: its tag doc, or its comment in Go.
func (w *writer) fieldDoc(t reflect.Type, f reflect.StructField) string {
	if doc := f.Tag.Get("doc"); doc != "" {
		return comment("  ", strings.NewReplacer(", in base64", "", " in base64", "").Replace(doc)) // bytes are a Uint8Array
	}
	doc := w.docs[t.PkgPath()+"."+t.Name()+"."+f.Name]
	if form := resultjson.Forms()[t]; form != nil && doc == "" {
		doc = w.docs[form.PkgPath()+"."+form.Name()+"."+f.Name]
	}
	return comment("  ", doc)
}

// comment returns a comment in TypeScript, or nothing.
func comment(indent, text string) string {
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
	return fmt.Sprintf("%s/** %s */\n", indent, strings.ReplaceAll(text, "*/", `*\/`))
}

// parseDocs returns the comments of the types and fields of the packages with types of the protocol.
func parseDocs(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, folder := range []string{
		"jail", "policy", "runtime", "runtime/requestjson", "runtime/resultjson", "runtime/snippets", "internal/session", "cmd/gaol/server/operation",
		"cmd/gaol/server/service", "vfs/hostfs", "runtime/internal/hostcall",
	} {
		files, err := filepath.Glob(filepath.Join("../../../..", folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			addDocs(docs, "gaol/"+folder+".", file)
		}
	}
	return docs
}

func addDocs(docs map[string]string, prefix string, file *ast.File) {
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, s := range group.Specs {
			spec := s.(*ast.TypeSpec)
			doc := spec.Doc.Text()
			if doc == "" && !group.Lparen.IsValid() {
				doc = group.Doc.Text()
			}
			name := prefix + spec.Name.Name
			docs[name], docs[spec.Name.Name] = doc, doc
			if object, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range object.Fields.List {
					for _, id := range f.Names {
						docs[name+"."+id.Name] = f.Doc.Text() + f.Comment.Text()
					}
				}
			}
		}
	}
}
