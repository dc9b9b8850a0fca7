package client_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/runtime/snippets"
	"gaol/vfs/hostfs"
)

func Example() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Options{})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	sb, err := c.Create(ctx, client.CreateOptions{})
	if err != nil {
		panic(err)
	}
	defer sb.Close()
	res, err := sb.Run(ctx, `console.log('hello'); __return({ sum: 1 + 2 })`, runtime.RunOptions{})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s%s\n", res.Stdout, res.Value)
}

// A program in the sandbox calls a function of this process.
func ExampleClient_Create() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Options{Address: "https://gaol.example.com:8640"}) // with $GAOL_TOKEN
	if err != nil {
		panic(err)
	}
	defer c.Close()
	prices := map[string]int{"apple": 3}
	sb, err := c.Create(ctx, client.CreateOptions{Bindings: map[string]any{
		"price": runtime.NewFunction("the price of a fruit", func(_ context.Context, fruit string) (int, error) {
			return prices[fruit], nil
		}),
	}})
	if err != nil {
		panic(err)
	}
	e, err := sb.Evaluate(ctx, `price('apple') * 2`, runtime.EvaluateOptions{})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", e.Value)
}

// The events of a run arrive while it runs.
func ExampleSandbox_Run_events() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Options{})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	sb, err := c.Create(ctx, client.CreateOptions{})
	if err != nil {
		panic(err)
	}
	_, err = sb.Run(ctx, `for (const n of [1, 2, 3]) console.log(n)`, runtime.RunOptions{OnEvent: func(e runtime.Event) {
		switch e := e.(type) {
		case runtime.StdoutEvent:
			fmt.Printf("%s", e.Data)
		case runtime.DenialEvent:
			fmt.Println("denied:", e.Denial.Rule, e.Denial.Target)
		}
	}})
	if err != nil {
		panic(err)
	}
}

// A program in the sandbox is an HTTP server, whose page comes from this process.
func ExampleSandbox_Dial() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Options{})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	sb, err := c.Create(ctx, client.CreateOptions{Permissions: policy.Permissions{Network: policy.Scope{
		Rules: []policy.Rule{{Mode: policy.Allow, Operations: []policy.Operation{"listen"}, Patterns: []string{"tcp://localhost:3000"}}},
	}}})
	if err != nil {
		panic(err)
	}
	if err := sb.FS().WriteFile(ctx, "/workspace/index.html", []byte("hello"), hostfs.WriteOptions{}); err != nil {
		panic(err)
	}
	_, err = sb.SpawnCode(ctx, `import fs from 'node:fs'; import http from 'node:http';
		http.createServer((_, res) => fs.createReadStream('index.html').pipe(res)).listen(3000, 'localhost')`, runtime.SpawnOptions{})
	if err != nil {
		panic(err)
	}
	if err := sb.WaitForListener(ctx, 3000); err != nil {
		panic(err)
	}
	web := http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return sb.Dial(ctx, 3000) },
		DisableKeepAlives: true,
	}}
	res, err := web.Get("http://localhost:3000/")
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", page)
}

// A batch run, which is submitted once, even if this process is started again before it gets the result.
func ExampleClient_Submit() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Options{})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	run, err := c.Submit(ctx, `console.log(process.argv[2])`, client.SubmitOptions{
		Key: "report:2026-11-28",
		Run: runtime.RunOptions{Args: []string{"2026-11-28"}},
	})
	if err != nil {
		panic(err)
	}
	if run, err = c.WaitBatchRun(ctx, run.Key); err != nil {
		panic(err)
	}
	if run.Error != nil { // the server could not run it
		panic(run.Error.Detail)
	}
	fmt.Printf("%s", run.Result.Stdout)
}

// A snippet in TypeScript, whose lines arrive as it prints them.
func ExampleClient_RunSnippet() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Options{})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	out, err := c.RunSnippet(ctx, snippets.Input{
		Source: `export const n: number = 6 * 7; console.log(n)`,
		OnLog:  func(line string) { fmt.Println(line) },
	}, client.SnippetOptions{Permissions: "strict"})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s %q\n", out.Facts, out.Errors)
}
