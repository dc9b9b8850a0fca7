package session

import (
	"encoding/json"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/service"
	"gaol/internal/strictjson"
)

// A method gets the parameters of a request, and returns its result.
type method func(t *task, params json.RawMessage) (any, error)

// A methodSet maps names to methods, and holds the schemas of their parameters.
type methodSet struct {
	byName   map[string]method
	registry huma.Registry
}

// methods returns all methods. It builds their schemas on first use: that takes some
// milliseconds, which commands without sessions save.
var methods = sync.OnceValue(func() *methodSet {
	m := &methodSet{map[string]method{}, huma.NewMapRegistry("#/", huma.DefaultSchemaNamer)}
	addRuns(m)
	addFiles(m)
	addPorts(m)
	addSnapshots(m)
	return m
})

func addRuns(m *methodSet) {
	add(m, "create", create)
	add(m, "list", list)
	add(m, "get", get)
	add(m, "renew", renew)
	add(m, "close", closeSandbox)
	add(m, "addCommands", addCommands)
	add(m, "runOnce", runOnce)
	add(m, "evaluateOnce", evaluateOnce)
	add(m, "runSnippet", runSnippet)
	add(m, "normalize", normalize)
	add(m, "tool", callTool)
	add(m, "run", run)
	add(m, "exec", exec)
	add(m, "command", command)
	add(m, "evaluate", evaluate)
	add(m, "spawn", spawn)
	add(m, "signal", signal)
	add(m, "resize", resize)
	add(m, "context", openContext)
	add(m, "cell", cell)
	add(m, "complete", complete)
	addUse(m, "usage", func(t *task, sb *service.Sandbox, _ SandboxParams) (any, error) { return sb.Usage(t.ctx) })
}

// add adds a method. Its parameters are checked as the HTTP API checks bodies.
func add[Params any](m *methodSet, name string, do func(*task, Params) (any, error)) {
	schema := m.registry.Schema(reflect.TypeFor[Params](), true, name)
	m.byName[name] = func(t *task, text json.RawMessage) (any, error) {
		var tree any
		if err := strictjson.Unmarshal(text, &tree); err != nil {
			return nil, service.Invalidf("params: %w", err)
		}
		var checked huma.ValidateResult
		huma.Validate(m.registry, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, tree, &checked)
		if len(checked.Errors) > 0 {
			return nil, service.Invalidf("%w", &invalidError{api.Details(checked.Errors)})
		}
		var p Params
		if err := strictjson.Unmarshal(text, &p); err != nil {
			return nil, service.Invalidf("params: %w", err)
		}
		return do(t, p)
	}
}
