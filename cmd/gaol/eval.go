package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gaol/runtime"
)

const evalUse = `eval [flags] FILE
  gaol eval [flags] -e CODE
  gaol eval [flags] [-] < CODE`

const evalLong = `Evaluate a snippet as a model hands it over: JavaScript, TypeScript or JSX, be it
in Markdown's fences, an expression, statements, or a function to be called. It
runs in a jail of its own. The value of its last expression is printed as JSON on
standard output, promises awaited; nothing if it has none, and a line on standard
error if it has no JSON, as a server has none. import, require and await may stand side
by side, and module.exports is the value where nothing else is. Code is read from
standard input where that is piped and nothing else is named.

What it prints by console comes as lines: those of log, info and debug on standard
output before the value, those of warn and error on standard error. An error is
told on standard error, with the places in the snippet and the lines around it.

--globals names a file with a JSON object: each member is a variable of the snippet.

Exit status: 0 if there was no error, 1 if there was one, 124 when it ran out of
time, 137 when it was killed for memory; 125 when gaol itself failed. With --json,
one object has it all, and standard error stays empty unless gaol itself failed.

Flags of the world that the snippet finds are those of gaol run.`

const evalExample = `  gaol eval -e '1 + 1'
  gaol eval -e 'async () => (await import("node:os")).cpus().length'
  echo '{"items": [1, 2, 3]}' > in.json; gaol eval --globals in.json -e 'items.map(n => n * 2)'
  gaol eval --json answer.md
  gaol eval --timeout 5s --heap 64m < snippet.ts`

// evalFlags are those of gaol eval.
type evalFlags struct {
	*runFlags
	globals            string
	result, heap       size
	maxLogs, logLength count
}

func (a *app) evalCommand() *cobra.Command {
	f := &evalFlags{runFlags: defaultRunFlags(), result: 1 << 20, maxLogs: 100, logLength: 1000}
	cmd := &cobra.Command{
		Use:                   evalUse,
		Short:                 "Evaluate a snippet that a model wrote",
		Long:                  evalLong,
		Example:               evalExample,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			code, globals, err := f.input(cmd, args, a.stdin)
			if err != nil {
				return err
			}
			return a.evaluate(cmd.Context(), code, globals, f)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *evalFlags) add(cmd *cobra.Command) {
	f.set = cmd.Flags()
	f.set.SortFlags = false
	f.set.StringVarP(&f.eval, "eval", "e", "", "evaluate `CODE` in place of a file")
	f.set.BoolVar(&f.json, "json", false, "print one JSON object about the evaluation and nothing else")
	f.set.StringVar(&f.globals, "globals", "", "`FILE` with a JSON object whose members the snippet finds as variables")
	f.set.Var(&f.result, "max-output", "bytes of JSON its value may have")
	f.set.Var(&f.maxLogs, "max-logs", "lines of console that are kept")
	f.set.Var(&f.logLength, "max-log-length", "characters of one line, which then ends in …")
	f.set.Var(&f.heap, "heap", "JavaScript heap it may use; 0: what --memory leaves")
	f.addLimits()
	f.addWorld(cmd)
}

// maxGlobals is what package runtime takes.
const maxGlobals = 16 << 20

// input reads the command line's words, the code they lead to, and the globals.
func (f *evalFlags) input(cmd *cobra.Command, args []string, stdin io.Reader) (code string, globals map[string]any, err error) {
	unnamed := len(args) == 0 && !f.set.Changed("eval") && isPiped(stdin)
	if unnamed {
		args = []string{"-"}
	}
	err = f.check(cmd.Context())
	if err == nil && f.set.Changed("globals") && f.globals == "" {
		err = errors.New("--globals is empty")
	}
	if err == nil {
		err = f.checkWords(args)
	}
	if err != nil {
		return "", nil, usageError(cmd.CommandPath(), err)
	}
	if globals, err = readGlobals(cmd.Context(), f.globals); err != nil {
		return "", nil, err
	}
	switch {
	case f.set.Changed("eval"):
		code = f.eval
	case args[0] == "-":
		code, err = readCode(cmd.Context(), stdin, "standard input", "evaluate")
		if unnamed && err == nil && code == "" {
			err = usageError(cmd.CommandPath(), f.checkWords(nil))
		}
	default:
		code, err = readCodeFile(cmd.Context(), args[0])
	}
	return code, globals, err
}

// checkWords refuses command lines that name no snippet, or two.
func (f *evalFlags) checkWords(args []string) error {
	const without = "a snippet has no arguments; --globals gives it data"
	eval := f.set.Changed("eval")
	switch {
	case eval && len(args) > 0:
		return errors.New("-e and " + quote(args[0]) + " exclude each other: " + without)
	case !eval && len(args) == 0:
		return errors.New("nothing to evaluate: give a FILE, - or -e CODE")
	case len(args) > 1:
		return errors.New("unexpected argument " + quote(args[1]) + ": " + without)
	}
	return nil
}

// readGlobals reads the file of --globals; "" is none.
func readGlobals(ctx context.Context, path string) (map[string]any, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--globals: %w", err)
	}
	defer file.Close()
	text, err := readBounded(ctx, file, path, maxGlobals)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return nil, &advisedError{fmt.Errorf("--globals %s: not a JSON object", path), `such as {"items": [1, 2]}`}
	}
	globals := map[string]any{}
	for name, v := range members {
		globals[name] = v
	}
	return globals, nil
}

// evaluate does it in a runtime made for it, prints what comes of it, and sets a.exit.
func (a *app) evaluate(ctx context.Context, code string, globals map[string]any, f *evalFlags) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o := f.options()
	o.Limits.Output = 0 // its own default: what is printed becomes lines
	if isTerminal(a.stderr) {
		o.Progress = a.stderr
	}
	sb, err := a.create(ctx, o)
	if err != nil {
		return err
	}
	if !f.json {
		a.tell(f.notes(sb))
	}
	lines := &evalLines{app: a, quiet: f.json, cancel: cancel}
	e, err := sb.evaluate(ctx, code, runtime.EvaluateOptions{
		Globals: globals, Timeout: f.runTimeout(), MaxOutput: int64(f.result),
		MaxLogs: int(f.maxLogs), MaxLogLength: int(f.logLength), Heap: int64(f.heap),
	}, lines.print)
	if lines.err != nil {
		err = lines.err // which canceled the snippet
	}
	if err := errors.Join(err, sb.Close()); err != nil {
		return err
	}
	a.exit = evalStatus(e)
	if f.json {
		return a.printJSON(newEvalOutput(e))
	}
	return a.printEvaluation(e, f)
}

// evalStatus is gaol's own exit status.
func evalStatus(e *runtime.Evaluation) int {
	switch {
	case e.Cause == runtime.CauseTimeout:
		return exitTimeout
	case e.Cause == runtime.CauseMemory:
		return exitMemory
	case e.Error != nil:
		return 1
	}
	return 0
}

// evalLines prints the lines of a snippet as they come, but for what is written to
// standard error past console: that may be Node's last words, which are told apart only
// at the end.
type evalLines struct {
	app    *app
	quiet  bool
	err    error
	cancel context.CancelCauseFunc
}

func (l *evalLines) print(line runtime.Log) {
	if l.quiet || l.err != nil || line.Level == runtime.LogStderr {
		return
	}
	w, name := l.app.stdout, "standard output"
	if line.Level == runtime.LogWarn || line.Level == runtime.LogError {
		w, name = l.app.stderr, "standard error"
	}
	if _, err := fmt.Fprintln(w, line.Text); err != nil {
		l.err = newOutputError(name, err)
		l.cancel(l.err)
	}
}

// printEvaluation prints what came of a snippet, for a person.
func (a *app) printEvaluation(e *runtime.Evaluation, f *evalFlags) error {
	for _, l := range e.Logs {
		if l.Level == runtime.LogStderr {
			fmt.Fprintln(a.stderr, l.Text)
		}
	}
	if e.Truncated.Logs {
		fmt.Fprintf(a.stderr, "gaol: there were more than %d lines; allow more with --max-logs\n", f.maxLogs)
	}
	if e.Result != nil {
		if _, err := fmt.Fprintf(a.stdout, "%s\n", e.Result); err != nil {
			return newOutputError("standard output", err)
		}
	}
	if e.NoResult != "" {
		a.tell([]string{"no value: " + oneLine(e.NoResult)})
	}
	if e.Error == nil {
		return nil
	}
	fmt.Fprintln(a.stderr, errorLines(e.Error))
	for _, line := range f.denied(&runtime.Result{ExitCode: 1, Denials: e.Denials}) {
		fmt.Fprintln(a.stderr, "gaol: "+line)
	}
	return nil
}

// errorLines are the stack, which begins with the error itself, and the frame.
func errorLines(e *runtime.GuestError) string {
	text := e.Stack
	if !strings.Contains(text, e.Message) || text == "" {
		text = e.Error()
	}
	if e.Frame != "" {
		text += "\n\n" + e.Frame
	}
	return strings.TrimRight(text, "\n")
}

// evalOutput is the object that gaol eval --json prints. Its shape is a promise to
// programs.
type evalOutput struct {
	Result     json.RawMessage `json:"result,omitempty"`   // absent when there is none
	NoResult   string          `json:"noResult,omitempty"` // why the value of the last expression has no JSON
	Error      *evalError      `json:"error"`
	Logs       []evalLog       `json:"logs"`
	Calls      []evalCall      `json:"calls"`
	DurationMs float64         `json:"durationMs"`
	Cause      runtime.Cause   `json:"cause"`
	Usage      outputUsage     `json:"usage"`
}

type evalError struct {
	Name       string                     `json:"name"`
	Message    string                     `json:"message"`
	Stack      string                     `json:"stack"`
	Frame      string                     `json:"frame"`
	Code       string                     `json:"code,omitempty"`
	Properties map[string]json.RawMessage `json:"properties,omitempty"`
	Cause      *evalError                 `json:"cause,omitempty"`
}

// newEvalError is nil for none.
func newEvalError(e *runtime.GuestError) *evalError {
	if e == nil {
		return nil
	}
	return &evalError{e.Name, e.Message, e.Stack, e.Frame, e.Code, e.Properties, newEvalError(e.Cause)}
}

type evalLog struct {
	Level runtime.LogLevel `json:"level"`
	Text  string           `json:"text"`
	MS    float64          `json:"ms"`
}

type evalCall struct {
	Name           string  `json:"name"`
	MS             float64 `json:"ms"`
	ArgumentsBytes int     `json:"argumentsBytes"`
	ResultBytes    int     `json:"resultBytes"`
	Error          string  `json:"error"`
}

func newEvalOutput(e *runtime.Evaluation) *evalOutput {
	o := &evalOutput{
		Result: e.Result, NoResult: e.NoResult, Error: newEvalError(e.Error), Logs: []evalLog{}, Calls: []evalCall{}, DurationMs: milliseconds(e.Duration), Cause: e.Cause, Usage: newOutputUsage(e.Usage),
	}
	for _, l := range e.Logs {
		o.Logs = append(o.Logs, evalLog{l.Level, l.Text, milliseconds(l.At.Round(time.Microsecond))})
	}
	for _, c := range e.Calls {
		o.Calls = append(o.Calls, evalCall{c.Name, milliseconds(c.Duration), c.Arguments, c.Result, c.Error})
	}
	return o
}
