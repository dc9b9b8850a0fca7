package settings

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	goruntime "runtime"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/quota"
)

var update = flag.Bool("update", false, "write docs/settings.md instead of comparing it")

const page = "../../../../docs/settings.md"

const pageHead = `# Settings of the server

The settings of the file that ` + "`gaol serve --config FILE`" + ` reads, ` + "`/etc/gaol/server.json`" + ` of the Debian package, generated from
the source. [hosting.md](hosting.md) explains their use. The file contains one JSON object. Omitted settings have their default. Unknown or repeated ones
are errors that name their path. Only root may be able to write to the file.
`

const quotasHead = `
## Quotas

The objects ` + "`server`, `tenant`, each of `tenants`, and `snippets.anonymous`" + ` have these. 0 means the default. Those of ` + "`tenants`" + ` and
` + "`snippets.anonymous`" + ` are by default as ` + "`tenant`" + `. With a low ` + "`LimitNOFILE`" + `, those of pending connects and look-ups are smaller.

Quotas that the settings name for a tenant bound it in a whole [fleet](fleet.md): the machines share the held ones, and each gets a part
of the divided ones. Other quotas bound it on each machine.

`

// The page of all settings is up to date.
func TestPage(t *testing.T) {
	p := &settingsPage{t: t, docs: map[string]string{}}
	p.readDocs(".")
	p.readDocs("../quota")
	p.text.WriteString(pageHead)
	p.section("", reflect.TypeFor[Settings]())
	p.quotas()
	if *update {
		if err := os.WriteFile(page, []byte(p.text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != p.text.String() {
		t.Errorf("%s differs from the settings: go test -run TestPage ./cmd/gaol/server/settings -update (%v)", page, err)
	}
}

type settingsPage struct {
	t    *testing.T
	docs map[string]string // of fields, as Type.Field
	text strings.Builder
}

// readDocs reads the comments of a package's structs.
func (p *settingsPage) readDocs(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			p.t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, field := range f.Names {
						p.docs[spec.Name.Name+"."+field.Name] = strings.Join(strings.Fields(f.Doc.Text()+f.Comment.Text()), " ")
					}
				}
			}
			return true
		})
	}
}

// section writes the settings of an object, and then of the objects in it.
func (p *settingsPage) section(path string, of reflect.Type) {
	if path != "" {
		fmt.Fprintf(&p.text, "\n## `%s`\n", path)
		path += "."
	}
	p.text.WriteString("\n| setting | type | default | is |\n| --- | --- | --- | --- |\n")
	type object struct {
		path string
		of   reflect.Type
	}
	var inside []object
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || len(f.Index) > 1 || name == "-" {
			continue // quotas have their own section
		}
		kind, nested := p.kind(f.Type, path+name)
		if nested != nil {
			inside = append(inside, object{path + name, nested})
		}
		doc, def := describe(p.doc(of, f), f.Name)
		switch {
		case f.Type.Kind() == reflect.Bool:
			def = "`false`"
		case strings.Contains(kind, "(#quotas)"):
			def = "[below](#quotas)"
		case def == "":
			def = "none"
		}
		fmt.Fprintf(&p.text, "| `%s` | %s | %s | %s |\n", path+name, kind, def, doc)
	}
	if of == reflect.TypeFor[Anonymous]() {
		fmt.Fprintf(&p.text, "\nIt also has all [quotas](#quotas), by default %d runs and %d requests a second.\n", anonymousRuns, anonymousRequests)
	}
	for _, o := range inside {
		p.section(o.path, o.of)
	}
}

func (p *settingsPage) doc(of reflect.Type, f reflect.StructField) string {
	doc := p.docs[of.Name()+"."+f.Name]
	if doc == "" {
		p.t.Errorf("%s.%s has no comment", of, f.Name)
	}
	return references.ReplaceAllString(doc, "")
}

// references are those to Go's documentation.
var references = regexp.MustCompile(`: see \[\w+\]`)

// kind returns the name of a type, and the type of an object with settings.
func (p *settingsPage) kind(of reflect.Type, path string) (name string, nested reflect.Type) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of == reflect.TypeFor[quota.Limits]():
		return "[quotas](#quotas)", nil
	case of.Kind() == reflect.Map:
		return "object of [quotas](#quotas)", nil
	case of.PkgPath() == "gaol/policy":
		return "[permissions](permissions.md)", nil
	case of.Kind() == reflect.Struct:
		return "[object](#" + strings.ToLower(strings.ReplaceAll(path, ".", "")) + ")", of
	case of.Kind() == reflect.Slice:
		return "array of strings", nil
	}
	names := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number"}
	if names[of.Kind()] == "" {
		p.t.Errorf("%s: a type without a name: %s", path, of)
	}
	return names[of.Kind()], nil
}

// describe returns a comment without the name of the field, and the default that it documents.
func describe(doc, field string) (text, def string) {
	text, def, _ = strings.Cut(doc, " Default: ")
	for _, verb := range []string{" is ", " are ", " "} {
		if rest, ok := strings.CutPrefix(text, field+verb); ok {
			text = rest
			break
		}
	}
	text = strings.TrimPrefix(text, ", ")
	return strings.TrimSuffix(strings.ReplaceAll(text, "docs/snippets.md#lint-rules", "[snippets.md](snippets.md#lint-rules)"), "."), strings.TrimSuffix(def, ".")
}

// quotas writes the fields of [quota.Limits].
func (p *settingsPage) quotas() {
	const memory, descriptors = 1 << 40, 1 << 20
	server, tenant := quota.DefaultLimits(memory, descriptors)
	p.text.WriteString(quotasHead + "| quota | default of `server` | of `tenant` | in a fleet | bounds |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range reflect.VisibleFields(reflect.TypeFor[quota.Limits]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		var defaults [2]string
		for i, l := range []quota.Limits{server, tenant} {
			switch v := reflect.ValueOf(l).FieldByIndex(f.Index).Interface(); name {
			case "memoryBytes":
				defaults[i] = fmt.Sprintf("%v of the machine's memory", float64(l.Memory)/memory)
			case "cpus":
				defaults[i] = fmt.Sprintf("%v for each processor", l.CPUs/float64(goruntime.NumCPU()))
			default:
				defaults[i] = fmt.Sprint(v)
				for size, unit := range map[int64]string{1 << 20: "MiB", 1 << 30: "GiB"} {
					if n, ok := v.(int64); ok && n%size == 0 && n/size < 1024 && n >= size {
						defaults[i] = fmt.Sprint(n/size, " ", unit)
					}
				}
			}
		}
		fmt.Fprintf(&p.text, "| `%s` | %s | %s | %s | %s |\n", name, defaults[0], defaults[1], f.Tag.Get("fleet"), p.doc(reflect.TypeFor[quota.Limits](), f))
	}
}
