package operation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gaol/internal/session"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

const operationsFile = "../../../npm/src/operations.ts"

// TestOperationTypes: the npm package defines the types of the server's operations.
func TestOperationTypes(t *testing.T) {
	compareGenerated(t, operationsFile, operationTypes(t))
}

// kinds are the names of the kinds of frames, by sender.
var kinds = []struct {
	sender string
	names  []string
	kinds  []session.Kind
}{
	{"send", []string{"request", "cancel", "stdin", "credit", "answer", "failure", "signal"}, []session.Kind{
		session.KindRequest, session.KindCancel, session.KindStdin, session.KindCredit, session.KindAnswer, session.KindFailure, session.KindSignal,
	}},
	{"receive", []string{"credit", "result", "error", "stdout", "stderr", "event", "call", "abandon"}, []session.Kind{
		session.KindCredit, session.KindResult, session.KindError, session.KindStdout, session.KindStderr, session.KindEvent, session.KindCall, session.KindAbandon,
	}},
}

// operationTypes returns the generated file.
func operationTypes(t *testing.T) []byte {
	w := &writer{docs: parseDocs(t), names: map[string]reflect.Type{}}
	fmt.Fprintf(&w.out, "// Code generated from the server's table of operations by make generate. DO NOT EDIT.\n\n")
	w.protocol()
	w.permissions(t)
	var operations, results bytes.Buffer
	for _, o := range All() {
		result, shape := "null", "any"
		if o.Output != nil {
			result, shape = w.result("", o.Output), w.shape("", o.Output)
		}
		fmt.Fprintf(&operations, "%s  %s: { params: %s; result: %s };\n", comment("  ", o.Summary), o.Name, w.input("", o.Input.Type), result)
		fmt.Fprintf(&results, "  %s: %q,\n", o.Name, shape)
	}
	w.result("", reflect.TypeFor[runtime.Log]())
	w.result("", reflect.TypeFor[resultjson.SnippetLog]())
	w.result("", reflect.TypeFor[runtime.Connection]())
	w.result("", reflect.TypeFor[session.CommandCall]())
	w.result("", reflect.TypeFor[session.CommandResult]())
	w.input("", reflect.TypeFor[session.Host]())
	fmt.Fprintf(&w.out, "/** The inputs and results of the operations. */\nexport interface Operations {\n%s}\n\n", operations.String())
	fmt.Fprintf(&w.out, "/** The shapes of the results. */\nexport const results: Readonly<Record<keyof Operations, string>> = {\n%s};\n\n", results.String())
	fmt.Fprintf(&w.out, "/** The shapes of the fields of objects, by type. Optional fields end in a question mark. */\n")
	fmt.Fprintf(&w.out, "export const shapes: Readonly<Record<string, Readonly<Record<string, string>>>> = {\n%s};\n\n", w.shapes.String())
	fmt.Fprintf(&w.out, "/** The names of the fields of inputs, by type, with those of the fields that are objects. */\n")
	fmt.Fprintf(&w.out, "export const fields = {\n%s} as const;\n", w.fields.String())
	return w.out.Bytes()
}

// protocol writes the constants of the protocol.
func (w *writer) protocol() {
	fmt.Fprintf(&w.out, "/** The WebSocket subprotocol: the name and version of the frames. */\nexport const protocol = %q;\n\n", session.Protocol)
	for _, c := range []struct {
		name, doc string
		value     int
	}{
		{"maxFrame", "The most bytes of a frame.", session.MaxFrame},
		{"window", "How many bytes may be sent on a stream before the receiver returns credit.", session.Window},
		{"maxChunk", "The most bytes of a frame of standard input.", session.MaxChunk},
		{"maxRequests", "The most requests without a result.", session.MaxRequests},
		{"maxCalls", "The most calls without a reply that the server sends.", session.MaxCalls},
	} {
		fmt.Fprintf(&w.out, "%sexport const %s = %d;\n\n", comment("", c.doc), c.name, c.value)
	}
	for _, k := range kinds {
		var list []string
		for i, name := range k.names {
			list = append(list, fmt.Sprintf("%s: %d", name, k.kinds[i]))
		}
		fmt.Fprintf(&w.out, "/** Kinds of frames that clients %s. */\nexport const %s = { %s } as const;\n\n", k.sender, k.sender, strings.Join(list, ", "))
	}
	fmt.Fprintf(&w.out, "/** The number of a stream in credit frames. */\nexport const stream = { stdin: %d, stdout: %d, stderr: %d, events: %d } as const;\n\n",
		session.Stdin, session.Stdout, session.Stderr, session.Events)
}

// scopeSchema is the part of a schema of permissions that types need.
type scopeSchema struct {
	Description string
	OneOf       []struct {
		Properties struct {
			Rules struct {
				Items struct {
					Properties struct {
						Operations struct {
							Items struct{ OneOf []struct{ Const string } }
						}
						Paths, Patterns *struct{ Items struct{ Description string } }
					}
				}
			}
		}
	}
}

const permissionTypes = `/** Whether operations are allowed. */
export type Mode = "allow" | "deny";

/** A rule of a scope. The last rule that matches decides. */
export interface Rule<Operation extends string> {
  mode: Mode;

  /** The operations that the rule is about. By default all of its scope. */
  operations?: readonly Operation[];
}

/** A rule about files: places are ` + "`/folder/**`" + ` or one file. */
export interface PathRule<Operation extends string> extends Rule<Operation> {
  paths?: readonly string[];
}

/** A rule with patterns. */
export interface PatternRule<Operation extends string> extends Rule<Operation> {
  patterns?: readonly string[];
}

/** A scope: one mode for all, or rules. Without ` + "`default`" + `, what no rule matches is denied. */
export type Scope<R> = Mode | { default?: Mode; rules: readonly R[] };

/** What sandboxed programs may do. Omitted scopes use the default: everything inside the sandbox, with its own localhost, and no other host. */
export interface Permissions {
`

// permissions writes the types of permissions, from their schema.
func (w *writer) permissions(t *testing.T) {
	t.Helper()
	var schema struct{ Properties map[string]scopeSchema }
	if err := json.Unmarshal(policy.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	w.out.WriteString(permissionTypes)
	fmt.Fprintf(&w.fields, "  Permissions: {\n")
	kind := reflect.TypeFor[policy.Permissions]()
	for i := range kind.NumField() {
		name := jsonName(kind.Field(i))
		scope := schema.Properties[name]
		rule := scope.OneOf[1].Properties.Rules.Items.Properties
		about, of, key := scope.Description, "Rule", ""
		switch {
		case rule.Paths != nil:
			about, of, key = about+". Paths: "+rule.Paths.Items.Description, "PathRule", ", paths: true"
		case rule.Patterns != nil:
			about, of, key = about+". Patterns: "+rule.Patterns.Items.Description, "PatternRule", ", patterns: true"
		}
		var operations []string
		for _, o := range rule.Operations.Items.OneOf {
			operations = append(operations, fmt.Sprintf("%q", o.Const))
		}
		fmt.Fprintf(&w.out, "%s  %s?: Scope<%s<%s>>;\n", comment("  ", about), name, of, strings.Join(operations, " | "))
		fmt.Fprintf(&w.fields, "    %s: { default: true, rules: { mode: true, operations: true%s } },\n", name, key)
	}
	fmt.Fprintf(&w.fields, "  },\n")
	w.out.WriteString("}\n\n")
}

// enums are types of strings with their values.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[runtime.Cause](): {
		string(runtime.CauseTimeout), string(runtime.CauseCPU), string(runtime.CauseMemory), string(runtime.CausePids),
		string(runtime.CauseOutput), string(runtime.CauseCanceled), string(runtime.CauseSignal), string(runtime.CauseMoved), string(runtime.CauseLost),
	},
	reflect.TypeFor[runtime.LogLevel](): {
		string(runtime.LogDebug), string(runtime.LogLog), string(runtime.LogInfo), string(runtime.LogWarn), string(runtime.LogError),
		string(runtime.LogStdout), string(runtime.LogStderr),
	},
}
