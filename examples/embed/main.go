package main

import (
	"context"
	"fmt"
	"log"

	"gaol/runtime"
)

func main() {
	sum, err := add(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sum:", sum)
}

// add runs a program in a sandbox of its own.
func add(ctx context.Context) (int, error) {
	rt, err := runtime.Create(ctx, runtime.Options{})
	if err != nil {
		return 0, err
	}
	defer rt.Close()
	res, err := rt.Run(ctx, `__return({ sum: 1 + 2 })`, runtime.RunOptions{})
	if err != nil {
		return 0, err
	}
	var value struct{ Sum int }
	err = res.Decode(&value)
	return value.Sum, err
}
