package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/danielgtaylor/huma/v2/negotiation"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// Negotiated is a part of a request whose response is an object or events. It is exported because
// huma reads exported fields only.
type Negotiated struct{ events bool }

// Resolve reads the header Accept.
func (n *Negotiated) Resolve(ctx huma.Context) []error {
	n.events = negotiation.SelectQValue(ctx.Header("Accept"), []string{typeJSON, typeEvents}) == typeEvents
	return nil
}

// sinkTo calls a function of the service with a sink, or without one for nil.
type sinkTo[Out any] func(context.Context, service.Sink) (*Out, error)

// respond returns the response of a request: the object, or its events with the object as the last
// one.
func respond[Out any](ctx context.Context, n Negotiated, do sinkTo[Out]) (*huma.StreamResponse, error) {
	if n.events {
		return &huma.StreamResponse{Body: func(hc huma.Context) { respondEvents(hc, do) }}, nil
	}
	out, err := do(ctx, nil)
	if err != nil {
		return nil, fail(err)
	}
	text, err := encode(out)
	if err != nil {
		return nil, fail(err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", typeJSON)
		hc.SetStatus(http.StatusOK)
		_, _ = hc.BodyWriter().Write(text) // the client may have gone
	}}, nil
}

func respondEvents[Out any](hc huma.Context, do sinkTo[Out]) {
	_, w := humago.Unwrap(hc)
	stream(hc.Context(), w, firstSign, func(ctx context.Context, s *eventStream) error {
		out, err := do(ctx, s.send)
		if err != nil {
			return err
		}
		return s.send(service.Event{Name: service.EventResult, Data: out})
	})
}

// followedRequest is a request whose response is an object or events.
type followedRequest[T any] struct {
	Negotiated
	Body T
}

// addFollowed adds an operation of the service whose response is an object or events.
func addFollowed[In, Out any](a *API, op huma.Operation, events []eventType,
	do func(context.Context, *tenant.Tenant, In) (*Out, error), follow func(context.Context, *tenant.Tenant, In, service.Sink) (*Out, error),
) {
	describe[Out](a, &op, events)
	huma.Register(a.huma, op, func(ctx context.Context, r *followedRequest[In]) (*huma.StreamResponse, error) {
		t := tenant.FromContext(ctx)
		return respond(ctx, r.Negotiated, func(ctx context.Context, to service.Sink) (*Out, error) {
			if to == nil {
				return do(ctx, t, r.Body)
			}
			return follow(ctx, t, r.Body, to)
		})
	})
}

// followedRequestIn is a request about a sandbox whose response is an object or events.
type followedRequestIn[T any] struct {
	InSandbox
	Negotiated
	Body T
}

// addFollowedIn adds an operation in a sandbox whose response is an object or events.
func addFollowedIn[In, Out any](a *API, op huma.Operation, events []eventType,
	do func(*service.Sandbox, context.Context, In) (*Out, error), follow func(*service.Sandbox, context.Context, In, service.Sink) (*Out, error),
) {
	describe[Out](a, &op, events)
	huma.Register(a.huma, op, func(ctx context.Context, r *followedRequestIn[In]) (*huma.StreamResponse, error) {
		t := tenant.FromContext(ctx)
		return respond(ctx, r.Negotiated, func(ctx context.Context, to service.Sink) (*Out, error) {
			sb, err := a.service.Acquire(t, r.ID)
			if err != nil {
				return nil, err
			}
			defer sb.Release()
			if to == nil {
				return do(sb, ctx, r.Body)
			}
			return follow(sb, ctx, r.Body, to)
		})
	})
}

// eventType is a kind of event with an example of its data.
type eventType struct {
	name service.EventName
	data any
	doc  string
}

// commonEvents are those of all runs.
var commonEvents = []eventType{
	{service.EventCall, resultjson.Call{}, "A call of a host function that has returned."},
	{service.EventConnect, resultjson.Connection{}, "A connection to a host outside that has ended or failed."},
	{service.EventDenial, runtime.Denial{}, "An operation that the permissions denied, when it occurs for the first time."},
	{service.EventError, Problem{}, "The last event, if the server could not run it, or it was canceled."},
}

// outputEvents are those of programs.
var outputEvents = append([]eventType{
	{service.EventStdout, resultjson.Output{}, "A piece of standard output, or of all output on a terminal. Pieces do not end inside a character."},
	{service.EventStderr, resultjson.Output{}, "A piece of standard error."},
}, commonEvents...)

// logEvent is that of evaluations.
var logEvent = eventType{service.EventLog, resultjson.Log{}, "A line that the snippet printed."}

var (
	runEvents      = append([]eventType{{service.EventResult, resultjson.Run{}, "The last event: the object of the other response, without output."}}, outputEvents...)
	evaluateEvents = append([]eventType{logEvent, {service.EventResult, resultjson.Evaluation{}, "The last event: the object of the other response."}}, commonEvents...)
	processEvents  = append([]eventType{
		{service.EventGap, service.Gap{}, "Events that are gone, because the process printed more than is kept."},
		{service.EventResult, resultjson.Run{}, "The last event: how the process ended, without output."},
	}, outputEvents...)
	cellEvents = []eventType{
		logEvent,
		{service.EventResult, resultjson.Evaluation{}, "The last event: the object of the other response."},
		{service.EventError, Problem{}, "The last event, if the server could not evaluate the cell, or it was canceled."},
	}
)

// describe documents a response that is an object or events.
func describe[Out any](a *API, op *huma.Operation, events []eventType) {
	r := a.huma.OpenAPI().Components.Schemas
	op.Responses = map[string]*huma.Response{"200": {
		Description: "OK. Events are sent if the header Accept prefers text/event-stream.",
		Content: map[string]*huma.MediaType{
			typeJSON:   {Schema: r.Schema(reflect.TypeFor[Out](), true, "")},
			typeEvents: {Schema: eventSchema(r, events, false)},
		},
	}}
}

// eventSchema describes a response of server-sent events.
func eventSchema(r huma.Registry, events []eventType, withID bool) *huma.Schema {
	var kinds []any
	for _, e := range events {
		kind := &huma.Schema{
			Type: huma.TypeObject, Description: e.doc, Required: []string{"event", "data"},
			Properties: map[string]*huma.Schema{
				"event": {Type: huma.TypeString, Enum: []any{string(e.name)}},
				"data":  r.Schema(reflect.TypeOf(e.data), true, ""),
			},
		}
		if withID {
			kind.Properties["id"] = &huma.Schema{Type: huma.TypeInteger, Description: "The event's number, for Last-Event-ID."}
			kind.Required = append(kind.Required, "id")
		}
		kinds = append(kinds, kind)
	}
	return &huma.Schema{
		Type:        huma.TypeArray,
		Description: "Server-sent events. The data of each is one line of JSON. Comments keep the connection alive.",
		Items:       &huma.Schema{Extensions: map[string]any{"oneOf": kinds}},
	}
}
