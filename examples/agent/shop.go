package main

import (
	"context"
	"fmt"

	"gaol/runtime"
)

type order struct {
	ID     int     `json:"id"`
	Status string  `json:"status"`
	Total  float64 `json:"total"`
}

// search is the argument of shop.find. NewFunction derives a JSON Schema from its tags and
// rejects arguments that do not match it.
type search struct {
	Status string `json:"status" jsonschema:"open or paid"`
}

var orders = []order{{1, "open", 12.5}, {2, "paid", 99}, {3, "open", 7.25}}

// shop returns the host functions that the model's code can call.
func shop() map[string]runtime.Function {
	return map[string]runtime.Function{
		"find":   runtime.NewFunction("finds orders by their status", find),
		"refund": runtime.NewFunction("refunds an order", refund),
	}
}

func find(_ context.Context, s search) ([]order, error) {
	var found []order
	for _, o := range orders {
		if o.Status == s.Status {
			found = append(found, o)
		}
	}
	return found, nil
}

func refund(_ context.Context, id int) (string, error) {
	return "", &runtime.CallError{Code: "E_FORBIDDEN", Message: fmt.Sprintf("order %d: refunds need a person's approval", id)}
}
