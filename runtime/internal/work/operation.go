package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gaol/internal/strictjson"
	"gaol/runtime/snippets/bundle"
)

// operations perform requests, by name. They panic only for a fault of the code that parses: the
// process then ends.
var operations = map[string]func(in json.RawMessage) (any, error){}

// message is a request.
type message struct {
	Operation string
	In        json.RawMessage
}

// An operation computes Out from In. Both have JSON, with text that may be any bytes as []byte.
type operation[In, Out any] struct {
	name string // as errors name it
	run  func(In) Out
}

// define defines an operation. It must be called while this package's variables are initialized.
func define[In, Out any](name string, run func(In) Out) operation[In, Out] {
	operations[name] = func(text json.RawMessage) (any, error) {
		var in In
		if err := strictjson.Decode(text, &in); err != nil {
			return nil, err
		}
		return run(in), nil
	}
	return operation[In, Out]{name, run}
}

// perform performs the request in the subprocess.
func (m message) perform() (any, error) {
	run := operations[m.Operation]
	if run == nil {
		return nil, fmt.Errorf("%q is not a valid operation", m.Operation)
	}
	return run(m.In)
}

// do performs the operation in the domain. The error is a [*Failure] if the input is to blame, the
// cause of ctx if that is done, or an error of this machine.
func (o operation[In, Out]) do(ctx context.Context, d *Domain, in In) (out Out, err error) {
	if d.parent == "" {
		var here Out
		if err := bundle.Await(ctx, func() { here = o.run(in) }); err != nil {
			return out, err
		}
		return here, nil
	}
	text, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	request, err := json.Marshal(message{o.name, text})
	if err != nil {
		return out, err
	}
	return out, d.perform(ctx, o.name, request, &out)
}

var bundleOperation = define("bundle", func(j bundle.Job) bundle.Built { return j.Run() })

// Bundle is [bundle.Job.Run], for bundle.Options.Run.
func (d *Domain) Bundle(ctx context.Context, j bundle.Job) (bundle.Built, error) {
	built, err := bundleOperation.do(ctx, d, j)
	if failure, ok := errors.AsType[*Failure](err); ok {
		return bundle.Built{Problems: []bundle.Problem{{Path: bundle.EntryPath, Line: 1, Column: 1, Message: "the snippet: " + failure.Reason}}}, nil
	}
	return built, err
}
