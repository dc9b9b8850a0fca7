package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"time"

	"gaol/runtime"
)

//go:embed notebook.md
var notebook string

// sales is the data that the notebook reads.
const sales = "city,amount\nOslo,10.5\nLima,7\nOslo,4\nPune,9.25\n"

// fenced matches the code blocks of a Markdown file.
var fenced = regexp.MustCompile("(?ms)^```(?:js|ts)\n(.*?)^```$")

func main() {
	if err := run(context.Background(), os.Stdout, runtime.Options{}); err != nil {
		log.Fatal(err)
	}
}

// run evaluates the cells of the notebook in order.
func run(ctx context.Context, out io.Writer, o runtime.Options) (err error) {
	o.Files = map[string][]byte{"/workspace/sales.csv": []byte(sales)}
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	cells, err := rt.NewContext(ctx, runtime.ContextOptions{})
	if err != nil {
		return err
	}
	for i, match := range fenced.FindAllStringSubmatch(notebook, -1) {
		e, err := cells.Evaluate(ctx, match[1], runtime.EvaluateOptions{
			Timeout: 5 * time.Second,
			Form:    runtime.ResultText, // as Node's REPL shows values
		})
		if err != nil {
			return err // for example ErrContextEnded, after a cell has called process.exit
		}
		show(out, i+1, e)
	}
	return cells.Close()
}

// show prints what a cell printed, and its value or its error.
func show(out io.Writer, n int, e *runtime.Evaluation) {
	for _, l := range e.Logs {
		fmt.Fprintln(out, l.Text)
	}
	if e.Error != nil {
		fmt.Fprintf(out, "[%d] %v\n%s", n, e.Error, e.Error.Frame)
		return
	}
	var text string
	if err := json.Unmarshal(e.Value, &text); err != nil {
		text = err.Error()
	}
	fmt.Fprintf(out, "[%d] %s\n", n, text)
}
