package client_test

import (
	"context"
	"fmt"

	"gaol/runtime"
	"gaol/runtime/client"
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
	fmt.Printf("%s\n", e.Result)
}

// The events of a run arrive while it runs.
func ExampleSandbox_FollowRun() {
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
	s := sb.FollowRun(ctx, `for (const n of [1, 2, 3]) console.log(n)`, runtime.RunOptions{})
	for e := range s.Events() {
		switch e := e.(type) {
		case runtime.StdoutEvent:
			fmt.Printf("%s", e.Data)
		case runtime.DenialEvent:
			fmt.Println("denied:", e.Denial.Rule, e.Denial.Target)
		}
	}
	if _, err := s.Result(); err != nil {
		panic(err)
	}
}
