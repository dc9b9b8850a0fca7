package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	"gaol/runtime"
)

// maxTurns limits a conversation that does not converge.
const maxTurns = 8

// message is one entry of the conversation.
type message struct{ role, text string }

func main() {
	if err := run(context.Background(), os.Stdout, runtime.Options{}); err != nil {
		log.Fatal(err)
	}
}

// run answers one question and prints the conversation.
func run(ctx context.Context, out io.Writer, o runtime.Options) (err error) {
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	a := agent{rt: rt, functions: shop(), out: out}
	text, err := a.answer(ctx, "Which orders are open, and can you refund the last one?")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "--- answer\n%s\n", text)
	return nil
}

type agent struct {
	rt        *runtime.NodeRuntime
	functions map[string]runtime.Function
	out       io.Writer
}

// answer lets the model answer a question with as many pieces of code as it needs.
func (a agent) answer(ctx context.Context, question string) (string, error) {
	talk := []message{{"system", a.instructions()}, {"user", question}}
	for range maxTurns {
		reply := askModel(talk)
		talk = append(talk, message{"assistant", reply})
		if !strings.Contains(reply, "```") {
			return reply, nil
		}
		// The model may be wrong, or misled by what it has read. Its code reaches nothing but
		// this sandbox and these functions.
		e, err := a.rt.Evaluate(ctx, reply, runtime.EvaluateOptions{Globals: a.globals()})
		if err != nil {
			return "", err // gaol itself failed; the model cannot correct that
		}
		talk = append(talk, message{"tool", report(e)})
		fmt.Fprintf(a.out, "--- code\n%s\n--- result\n%s\n", reply, report(e))
	}
	return "", errors.New("the model did not answer the question")
}

func (a agent) globals() map[string]any {
	members := map[string]any{}
	for name, f := range a.functions {
		members[name] = f
	}
	return map[string]any{"shop": members}
}

// instructions describe the functions to the model.
func (a agent) instructions() string {
	var text strings.Builder
	text.WriteString("Reply with a block of JavaScript to run it, or with the answer alone. Functions:\n")
	for _, name := range slices.Sorted(maps.Keys(a.functions)) {
		f := a.functions[name]
		fmt.Fprintf(&text, "shop.%s: %s; arguments: %s\n", name, f.Description, f.Schema)
	}
	return text.String()
}

// report describes an evaluation to the model: the lines that the code printed, and its value
// or its error with the source lines around it.
func report(e *runtime.Evaluation) string {
	var text strings.Builder
	for _, l := range e.Logs {
		fmt.Fprintf(&text, "%s: %s\n", l.Level, l.Text)
	}
	switch {
	case e.Error != nil:
		fmt.Fprintf(&text, "error: %v\n%s", e.Error, e.Error.Frame)
	case e.Value == nil:
		text.WriteString("no value " + e.NoValue)
	default:
		fmt.Fprintf(&text, "value: %s", e.Value)
	}
	return text.String()
}
