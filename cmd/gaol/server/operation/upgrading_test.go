package operation

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// methods are the former names of operations in sessions, which spoke gaol.v1.
var methods = map[string]string{
	"createSandbox": "create", "listSandboxes": "list", "getSandbox": "get", "renewSandbox": "renew", "deleteSandbox": "close",
	"run": "runOnce", "evaluate": "evaluateOnce", "runIn": "run", "execIn": "exec", "commandIn": "command",
	"evaluateIn": "evaluate", "createContext": "context", "evaluateCell": "cell", "completeInContext": "complete",
	"statFile": "stat", "makeFolder": "makeDir", "moveFile": "move", "removeFile": "remove", "packFolder": "readTar",
	"unpackFolder": "writeTar", "takeSnapshot": "snapshot", "deleteSnapshot": "removeSnapshot", "listListeners": "listeners",
	"waitForPort": "waitForListener", "getUsage": "usage", "signalProcess": "signal", "resizeProcess": "resize",
}

// formerFields are the former names of fields.
var formerFields = []struct {
	of                         reflect.Type
	doors, before, after, inGo string
}{
	{reflect.TypeFor[runtime.Evaluation](), "HTTP, sessions, npm, Go", "result", "value", ", Go: `Value`"},
	{reflect.TypeFor[runtime.Evaluation](), "HTTP, sessions, npm, Go", "noResult", "noValue", ", Go: `NoValue`"},
	{reflect.TypeFor[runtime.Truncated](), "sessions, npm", "callsTruncated", "calls", ""},
	{reflect.TypeFor[runtime.Connection](), "sessions, npm", "ms", "durationMs", ""},
	{reflect.TypeFor[resultjson.FileInfo](), "HTTP", "bytes", "size", ""},
}

// TestUpgradingPage: upgrading.md lists what has another name than before.
func TestUpgradingPage(t *testing.T) {
	var page strings.Builder
	page.WriteString("# Upgrading\n\nOperations and fields that have new names. [CHANGELOG](../../../../CHANGELOG.md) lists all other changes.\n\n" +
		"## Methods of sessions\n\nNames in `gaol.v1`, and in parentheses today:\n\n")
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if ByName(name) == nil {
			t.Errorf("there is no operation %s", name)
		}
		fmt.Fprintf(&page, "- `%s` (`%s`)\n", methods[name], name)
	}
	page.WriteString("\n## Fields\n\n")
	for _, f := range formerFields {
		names := jsonNames(f.of)
		if names[f.after] == "" || names[f.before] != "" {
			t.Errorf("%v has the fields %v", f.of, slices.Sorted(maps.Keys(names)))
		}
		var in []string
		for _, o := range All() {
			if carries(o, f.of) {
				in = append(in, "`"+o.Name+"`")
			}
		}
		if len(in) == 0 {
			t.Errorf("no operation returns %v", f.of)
		}
		fmt.Fprintf(&page, "- %s: `%s` (`%s`%s), in `%s` of %s\n", f.doors, f.before, f.after, f.inGo, f.of.Name(), strings.Join(in, ", "))
	}
	compareGenerated(t, "upgrading.md", []byte(page.String()))
}

// jsonNames returns the names in JSON of a struct's fields, with their names in Go.
func jsonNames(of reflect.Type) map[string]string {
	names := map[string]string{}
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names[name] = f.Name
	}
	return names
}

// carries reports whether a type is a part of the result or of an event of an operation.
func carries(o *Operation, part reflect.Type) bool {
	seen := map[reflect.Type]bool{}
	var has func(reflect.Type) bool
	has = func(t reflect.Type) bool {
		if t == nil || seen[t] {
			return false
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			return has(t.Elem())
		case reflect.Struct:
			return t == part || slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.IsExported() && has(f.Type) })
		}
		return false
	}
	return has(o.Output) || slices.ContainsFunc(o.Events, func(e EventType) bool { return has(reflect.TypeOf(e.Data)) })
}
