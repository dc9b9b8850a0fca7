package session

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/strictjson"
)

// methods are the methods of requests. A method gets the parameters, and returns the result.
var methods = map[string]func(t *task, params json.RawMessage) (any, error){}

// registry has the schemas of parameters. It is written only while the package is initialized.
var registry = huma.NewMapRegistry("#/", huma.DefaultSchemaNamer)

func init() {
	huma.ValidateStrictCasing = true
	add("create", create)
	add("list", list)
	add("get", get)
	add("renew", renew)
	add("close", closeSandbox)
	add("addCommands", addCommands)
	add("runOnce", runOnce)
	add("evaluateOnce", evaluateOnce)
	add("runSnippet", runSnippet)
	add("normalize", normalize)
	add("tool", callTool)
	add("run", run)
	add("exec", exec)
	add("command", command)
	add("evaluate", evaluate)
	add("spawn", spawn)
	add("signal", signal)
	add("resize", resize)
	add("context", openContext)
	add("cell", cell)
	add("complete", complete)
	addUse("usage", func(t *task, sb *service.Sandbox, _ SandboxParams) (any, error) { return sb.Usage(t.ctx) })
}

// add adds a method. Its parameters are checked as the HTTP API checks bodies.
func add[Params any](name string, do func(*task, Params) (any, error)) {
	schema := registry.Schema(reflect.TypeFor[Params](), true, name)
	methods[name] = func(t *task, text json.RawMessage) (any, error) {
		var tree any
		if err := strictjson.Unmarshal(text, &tree); err != nil {
			return nil, service.Invalidf("params: %w", err)
		}
		var checked huma.ValidateResult
		huma.Validate(registry, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, tree, &checked)
		if len(checked.Errors) > 0 {
			return nil, service.Invalidf("%w", &invalidError{api.Details(checked.Errors)})
		}
		var p Params
		if err := json.Unmarshal(text, &p); err != nil {
			return nil, service.Invalidf("params: %w", err)
		}
		return do(t, p)
	}
}
