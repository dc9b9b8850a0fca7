package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// CodeArgs are the arguments of run_code.
type CodeArgs struct {
	Code      string `json:"code" jsonschema:"The code. The value of its last expression is the result; what it prints is the output. It may use import, require and await."`
	Language  string `json:"language,omitempty" jsonschema:"js (the default) or ts. TypeScript and JSX are translated in both; types are not checked."`
	SandboxID string `json:"sandboxId,omitempty" jsonschema:"The sandbox to run in. Omit it for a fresh one that is deleted afterwards."`
	ContextID string `json:"contextId,omitempty" jsonschema:"Keeps variables between calls, as in a notebook: \"new\" creates a context, and a contextId of an earlier result continues it."`
	TimeoutMs int64  `json:"timeoutMs,omitempty" jsonschema:"Time limit in milliseconds; 30,000 by default."`
}

// CodeResult is the result of run_code.
type CodeResult struct {
	Output    string     `json:"output" jsonschema:"What the code printed, at most some 40,000 characters."`
	Value     any        `json:"value,omitempty" jsonschema:"The value of the last expression. Absent if it is undefined, cannot be encoded as JSON, or is too long."`
	NoValue   string     `json:"noValue,omitempty" jsonschema:"Why the value cannot be encoded as JSON."`
	Error     *CodeError `json:"error,omitempty" jsonschema:"Why the code failed. Absent if it did not."`
	Truncated bool       `json:"truncated" jsonschema:"Whether output or value are incomplete."`
	SandboxID string     `json:"sandboxId,omitempty" jsonschema:"The sandbox, if it still exists."`
	ContextID string     `json:"contextId,omitempty" jsonschema:"The context, for further calls."`
	runSummary
}

// runSummary is what all runs report.
type runSummary struct {
	Cause           string   `json:"cause,omitempty" jsonschema:"Why gaol or the kernel ended it: timeout, cpu, memory, pids, output, canceled or signal. Absent if it ended by itself."`
	DurationMs      float64  `json:"durationMs"`
	CPUMs           float64  `json:"cpuMs"`
	PeakMemoryBytes int64    `json:"peakMemoryBytes"`
	Denials         []Denial `json:"denials" jsonschema:"What permissions denied, and what would allow it."`
}

func summary(cause runtime.Cause, durationMs float64, u resultjson.Usage, denials []Denial) runSummary {
	return runSummary{string(cause), durationMs, u.CPUMs, u.PeakMemoryBytes, denials}
}

// CodeError is an error of the code.
type CodeError struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack,omitempty"`
	Frame   string `json:"frame,omitempty" jsonschema:"The lines of the code around the position."`
}

const maxErrorText = 4000 // characters of each field

func newCodeError(e *runtime.GuestError) *CodeError {
	if e == nil {
		return nil
	}
	c := &CodeError{e.Name, strings.TrimPrefix(e.Error(), e.Name+": "), e.Stack, e.Frame}
	if c.Stack != "" {
		c.Stack = e.Trace()
	}
	for _, field := range []*string{&c.Name, &c.Message, &c.Stack, &c.Frame} {
		*field, _ = cut(strings.ToValidUTF8(*field, "\uFFFD"), maxErrorText)
	}
	return c
}

func (c *CodeError) text() string {
	if c == nil {
		return ""
	}
	head := strings.TrimPrefix(c.Name+": "+c.Message, ": ")
	if strings.HasPrefix(c.Stack, head) {
		head = ""
	}
	return paragraphs(head, c.Stack, c.Frame)
}

func (e *endpoint) runCode(ctx context.Context, r *mcp.CallToolRequest, a CodeArgs) (res *mcp.CallToolResult, out *CodeResult, err error) {
	p := newProgress(ctx, r)
	defer p.stop()
	if a.ContextID != "" {
		return e.runCell(ctx, p, a)
	}
	err = e.useSandbox(ctx, a.SandboxID, func(ctx context.Context, sb *service.Sandbox) (keep bool, err error) {
		o := &overflow{sb: sb}
		res, out, err = e.evaluate(ctx, o, p, a, func(ctx context.Context, c requestjson.Cell, s service.Streams) (*resultjson.Evaluation, error) {
			return sb.Evaluate(ctx, requestjson.Snippet{Cell: c}, s)
		})
		if out != nil && (o.kept() || a.SandboxID != "") {
			out.SandboxID = sb.ID
		}
		return o.kept(), err
	})
	return res, out, e.explain(err)
}

// useSandbox calls do with a sandbox: a new one without an id.
func (e *endpoint) useSandbox(ctx context.Context, id string, do func(context.Context, *service.Sandbox) (keep bool, err error)) error {
	if id == "" {
		return e.service.UseNew(ctx, e.tenant, do)
	}
	sb, err := e.acquire(id)
	if err != nil {
		return err
	}
	defer sb.Release()
	_, err = do(ctx, sb)
	return err
}

// runCell runs code in a context.
func (e *endpoint) runCell(ctx context.Context, p *progress, a CodeArgs) (*mcp.CallToolResult, *CodeResult, error) {
	var live *liveContext
	var err error
	if a.ContextID == newContext {
		live, err = e.open(ctx, a.SandboxID)
	} else {
		live, err = e.findContext(a.ContextID, a.SandboxID)
	}
	if err != nil {
		return nil, nil, err
	}
	o := &overflow{sb: live.sb}
	defer live.sb.Release()
	res, out, err := e.evaluate(ctx, o, p, a, live.context.Evaluate)
	if errors.Is(err, runtime.ErrContextEnded) {
		return nil, nil, fmt.Errorf("context %q has ended: its variables are lost. Pass contextId %q for a new one", live.context.ID, newContext)
	}
	if err != nil {
		return nil, nil, e.explain(err)
	}
	out.SandboxID = live.sb.ID
	if live.context.Info().State == resultjson.Ended {
		o.notes = append(o.notes, fmt.Sprintf("[context %s has ended: its variables are lost]", live.context.ID))
	} else {
		out.ContextID = live.context.ID
		o.notes = append(o.notes, fmt.Sprintf("[contextId %s, sandboxId %s]", live.context.ID, live.sb.ID))
	}
	res.Content = o.content(out.text())
	return res, out, nil
}

// errOutput is why code is canceled that prints more than a run may.
var errOutput = errors.New("the code printed more than 16 MiB")

const (
	maxOutput     = 16 << 20  // bytes of all lines
	maxLines      = 100_000   // of output
	maxLineLength = 1_000_000 // characters
)

// evaluate runs code by do, and describes how it ended.
func (e *endpoint) evaluate(ctx context.Context, o *overflow, p *progress, a CodeArgs, do func(context.Context, requestjson.Cell, service.Streams) (*resultjson.Evaluation, error)) (*mcp.CallToolResult, *CodeResult, error) {
	audit.Of(ctx).SetSandbox(o.sb.ID)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	printed := 0
	to := func(event service.Event) error {
		if l, ok := event.Data.(resultjson.Log); ok {
			p.note(l.Text)
			if printed += len(l.Text); printed > maxOutput {
				cancel(errOutput)
			}
		}
		return nil
	}
	c := requestjson.Cell{Code: a.Code, Timeout: requestjson.Timeout{Ms: a.TimeoutMs}, MaxLogs: maxLines, MaxLogLength: maxLineLength}
	n, err := do(ctx, c, service.Streams{To: to, BoundsLogs: true})
	flooded := n != nil && errors.Is(context.Cause(ctx), errOutput)
	if err != nil && !flooded {
		return nil, nil, err
	}
	out := e.newCodeResult(o, n)
	if flooded {
		out.Cause, out.Truncated = string(runtime.CauseOutput), true
		out.Error = &CodeError{Name: "LimitError", Message: errOutput.Error()}
	}
	return &mcp.CallToolResult{Content: o.content(out.text()), IsError: out.Error != nil || out.Cause != ""}, out, nil
}

func (e *endpoint) newCodeResult(o *overflow, n *resultjson.Evaluation) *CodeResult {
	var lines strings.Builder
	for _, l := range n.Logs {
		lines.WriteString(l.Text + "\n")
	}
	output, value := lines.String(), string(n.Value)
	forOutput, forValue := shares(output, value)
	out := &CodeResult{
		NoValue: n.NoValue, Error: newCodeError(n.Evaluation().Error), Truncated: n.Truncated.Logs,
		runSummary: summary(n.Cause, n.DurationMs, n.Usage, e.denials(o.sb.Permissions(), n.Denials)),
	}
	if n.Truncated.Logs {
		o.notes = append(o.notes, fmt.Sprintf("[output: only the first %d lines were kept]", maxLines))
	}
	out.Output = o.fit("output.txt", "text/plain", output, forOutput)
	if shown := o.fit("value.json", "application/json", value, forValue); shown != value {
		out.NoValue = "it is too long: " + shown[:min(len(shown), 200)] + "…"
		out.NoValue = strings.ToValidUTF8(out.NoValue, "")
	} else if value != "" {
		out.Value = json.RawMessage(value)
	}
	out.Truncated = out.Truncated || o.kept() || len(o.notes) > 0
	return out
}

// text describes a result.
func (r *CodeResult) text() string {
	value := ""
	switch {
	case r.Value != nil:
		value = fmt.Sprintf("=> %s", r.Value)
	case r.NoValue != "":
		value = "[no value: " + r.NoValue + "]"
	}
	return paragraphs(append([]string{r.Output, value, r.Error.text()}, denialLines(r.Denials)...)...)
}
