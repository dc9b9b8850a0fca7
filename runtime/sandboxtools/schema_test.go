package sandboxtools

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// samples are calls with all arguments of each tool.
var samples = map[string]string{
	"sandbox_init":             `{"containerId": "a", "imageName": "none", "containerName": "n", "projectOutPath": "/p", "rootPath": "work/space"}`,
	"sandbox_destroy":          `{"containerId": "a", "removeContainer": true}`,
	"sandbox_command":          `{"containerId": "a", "executable": "node", "args": ["-p", "1"], "workingDirectory": "/", "envVars": ["K=V\n=", "L="], "timeout": 30000}`,
	"sandbox_write_file":       `{"containerId": "a", "path": "p", "content": "\u0000", "encoding": "utf8", "createParentDirs": true}`,
	"sandbox_read_file":        `{"containerId": "a", "path": "p", "encoding": "base64"}`,
	"sandbox_list_directory":   `{"containerId": "a", "path": "p", "recursive": true}`,
	"sandbox_create_directory": `{"containerId": "a", "path": "p", "recursive": true}`,
	"sandbox_delete":           `{"containerId": "a", "path": "p", "recursive": true, "force": false}`,
	"sandbox_exists":           `{"containerId": "a", "path": "p"}`,
	"sandbox_file_info":        `{"containerId": "a", "path": "p"}`,
}

// outputs are results of each tool.
var outputs = map[string]any{
	"sandbox_init":             InitResult{ContainerID: "a"},
	"sandbox_destroy":          DestroyResult{ContainerID: "a", Removed: true},
	"sandbox_command":          CommandResult{Stdout: "x"},
	"sandbox_write_file":       WriteFileResult{Path: "/p", Size: 1},
	"sandbox_read_file":        ReadFileResult{Encoding: "utf8"},
	"sandbox_list_directory":   ListDirectoryResult{Path: "/", Entries: []Entry{{Name: "a", Type: "file", Path: "/a"}}},
	"sandbox_create_directory": CreateDirectoryResult{Path: "/p"},
	"sandbox_delete":           DeleteResult{Path: "/p"},
	"sandbox_exists":           ExistsResult{Path: "/p"},
	"sandbox_file_info":        FileInfoResult{Path: "/p", ModifiedAt: "2001-09-09T01:46:40Z", AccessedAt: "2001-09-09T01:46:40Z"},
}

// compiled compiles the schemas of all tools, which must be valid draft 2020-12.
func compiled(t testing.TB, which func(Tool) json.RawMessage) map[string]*jsonschema.Schema {
	t.Helper()
	all := map[string]*jsonschema.Schema{}
	for _, tool := range Tools() {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(which(tool)))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource(tool.Name, doc); err != nil {
			t.Fatal(err)
		}
		if all[tool.Name], err = c.Compile(tool.Name); err != nil {
			t.Fatal(err)
		}
		if all[tool.Name].DraftVersion != 2020 {
			t.Errorf("%s: draft %d", tool.Name, all[tool.Name].DraftVersion)
		}
	}
	return all
}

func validate(s *jsonschema.Schema, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(value)
}

func TestInputSchemas(t *testing.T) {
	schemas := compiled(t, func(t Tool) json.RawMessage { return t.InputSchema })
	for name, text := range samples {
		if err := validate(schemas[name], []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "sandbox_init" {
			continue // it fails with another error: TestRefusals and FuzzCall cover it
		}
		b := newTestToolbox(t, Options{})
		if _, err := b.Call(t.Context(), name, json.RawMessage(text)); CodeOf(err) != NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, tc := range refusals {
		if err := validate(schemas[tc.tool], []byte(tc.args)); tc.inSchema != (err != nil) && json.Valid([]byte(tc.args)) {
			t.Errorf("%s %.100s: the schema says: %v", tc.tool, tc.args, err)
		}
	}
}

func TestOutputSchemas(t *testing.T) {
	schemas := compiled(t, func(t Tool) json.RawMessage { return t.OutputSchema })
	for name, result := range outputs {
		text, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(schemas[name], text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if validate(schemas[name], append(text[:len(text)-1], `,"more":1}`...)) == nil || validate(schemas[name], []byte("{}")) == nil {
			t.Errorf("%s accepts any object", name)
		}
	}
}

// The names of the tools and of the arguments, and the defaults, are as workflow
// engines use them.
func TestTools(t *testing.T) {
	want := map[string]string{
		"sandbox_init":             `containerId containerName imageName projectOutPath rootPath="workspace"`,
		"sandbox_destroy":          `containerId! removeContainer=true`,
		"sandbox_command":          `args containerId! envVars executable! timeout=30000 workingDirectory="."`,
		"sandbox_write_file":       `containerId! content! createParentDirs=false encoding="utf8" path!`,
		"sandbox_read_file":        `containerId! encoding="utf8" path!`,
		"sandbox_list_directory":   `containerId! path! recursive=false`,
		"sandbox_create_directory": `containerId! path! recursive=false`,
		"sandbox_delete":           `containerId! force=false path! recursive=false`,
		"sandbox_exists":           `containerId! path!`,
		"sandbox_file_info":        `containerId! path!`,
	}
	got := map[string]string{}
	for _, tool := range Tools() {
		var s struct {
			Properties map[string]struct {
				Default     json.RawMessage
				Description string
			}
			Required []string
		}
		if err := json.Unmarshal(tool.InputSchema, &s); err != nil {
			t.Fatal(err)
		}
		var list []string
		for name, p := range s.Properties {
			if slices.Contains(s.Required, name) {
				name += "!"
			} else if p.Default != nil {
				name += "=" + string(p.Default)
			}
			if p.Description == "" {
				t.Errorf("%s: %s has no description", tool.Name, name)
			}
			list = append(list, name)
		}
		slices.Sort(list)
		got[tool.Name] = strings.Join(list, " ")
		if tool.Description == "" {
			t.Errorf("%s has no description", tool.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	Tools()[0].InputSchema[0] = 'x' // as a caller might
	if Tools()[0].InputSchema[0] != '{' {
		t.Error("callers share the memory of the schemas")
	}
}
