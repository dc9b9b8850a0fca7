package runtime_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"gaol/policy"
	"gaol/runtime"
	"gaol/vfs/hostfs"
)

func Example() {
	ctx := context.Background()
	rt, err := runtime.Create(ctx, runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	res, err := rt.Run(ctx, `
		import os from 'node:os';
		console.log('hello from', os.hostname());
		__return({ sum: 1 + 2 });`, runtime.RunOptions{Timeout: 5 * time.Second})
	if err != nil {
		log.Print(err)
		return
	}
	var out struct{ Sum int }
	if err := res.Decode(&out); err != nil {
		log.Print(err)
		return
	}
	fmt.Printf("%sexit code %d, sum %d\n", res.Stdout, res.ExitCode, out.Sum)
	// Output:
	// hello from secure-exec
	// exit code 0, sum 3
}

func ExampleNodeRuntime_Command() {
	ctx := context.Background()
	rt, err := runtime.Create(ctx, runtime.Options{Env: map[string]string{"WHO": "you"}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	res, err := rt.Command(ctx, "sh", []string{"-c", "echo hello $WHO; exit 3"}, runtime.RunOptions{})
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Printf("%sexit code %d\n", res.Stdout, res.ExitCode)
	// Output:
	// hello you
	// exit code 3
}

func ExampleNodeRuntime_Run_events() {
	ctx := context.Background()
	rt, err := runtime.Create(ctx, runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	res, err := rt.Run(ctx, `console.log('one'); setTimeout(() => { console.error('two'); process.exit(3) }, 50)`, runtime.RunOptions{
		OnEvent: func(e runtime.Event) {
			switch e := e.(type) {
			case runtime.StdoutEvent:
				fmt.Printf("printed %s", e.Data)
			case runtime.StderrEvent:
				fmt.Printf("complained %s", e.Data)
			}
		},
	})
	if err == nil {
		fmt.Println("exit code", res.ExitCode)
	}
	// Output:
	// printed one
	// complained two
	// exit code 3
}

func ExamplePool() {
	ctx := context.Background()
	pool, err := runtime.NewPool(runtime.Options{}, runtime.PoolOptions{Size: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	rt, err := pool.Get(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	defer rt.Close() // the caller owns it: it does not return to the pool
	res, err := rt.Run(ctx, `console.log('hello')`, runtime.RunOptions{})
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Printf("%s", res.Stdout)
	// Output:
	// hello
}

func ExampleNodeRuntime_Spawn() {
	ctx := context.Background()
	rt, err := runtime.Create(ctx, runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	p, err := rt.Spawn(ctx, "cat", nil, runtime.SpawnOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(p.Stdin, "hello")
	line, _ := bufio.NewReader(p.Stdout).ReadString('\n')
	p.Stdin.Close()
	res, err := p.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(line, res.ExitCode)
	if err := rt.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: hello
	// 0
}

// A guest serves HTTP to its host.
func ExampleNodeRuntime_NewTransport() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	mayListen := policy.Rule{Mode: policy.Allow, Operations: []policy.Operation{"listen"}, Patterns: []string{"tcp://localhost:*"}}
	rt, err := runtime.Create(ctx, runtime.Options{
		Permissions: policy.Permissions{Network: policy.Scope{Rules: []policy.Rule{mayListen}}},
	})
	if err != nil {
		log.Print(err)
		return
	}
	defer rt.Close()
	server := `require('node:http').createServer((req, res) => res.end('hello ' + req.url)).listen(3000)`
	if _, err := rt.SpawnCode(ctx, server, runtime.SpawnOptions{}); err != nil {
		log.Print(err)
		return
	}
	if err := rt.WaitForListener(ctx, 3000); err != nil {
		log.Print(err)
		return
	}
	client := http.Client{Transport: rt.NewTransport()}
	resp, err := client.Get("http://localhost:3000/world")
	if err != nil {
		log.Print(err)
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	fmt.Printf("%s %v\n", text, err)
	// Output: hello /world <nil>
}

func ExampleNodeRuntime_FS() {
	ctx := context.Background()
	rt, err := runtime.Create(ctx, runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	files := rt.FS()
	if err := files.WriteFile("/workspace/in/names.txt", []byte("b\na\n"), hostfs.WriteOptions{Parents: true}); err != nil {
		log.Print(err)
		return
	}
	if _, err := rt.Command(ctx, "sh", []string{"-c", "sort in/names.txt > sorted.txt"}, runtime.RunOptions{}); err != nil {
		log.Print(err)
		return
	}
	sorted, err := files.ReadFile("/workspace/sorted.txt")
	fmt.Printf("%q %v\n", sorted, err)
	// Output:
	// "a\nb\n" <nil>
}
