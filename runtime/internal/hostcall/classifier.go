package hostcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Classifier says what a caller's value is: a function with its Call, a map that may contain
// some, or data if neither is set.
type Classifier func(v any) (f Function, inside map[string]any, err error)

// NewClassifier returns the Classifier of programs whose functions have the type F, a pointer to it, or
// that of Func. Of converts a function.
func NewClassifier[F any](of func(F) Function) Classifier {
	return func(v any) (f Function, inside map[string]any, err error) {
		switch v := v.(type) {
		case func(context.Context, json.RawMessage) (any, error):
			f.Call = v
		case map[string]any:
			return f, v, nil
		case *F:
			if v != nil {
				f = of(*v)
			}
		case F:
			f = of(v)
		default:
			if v != nil && reflect.TypeOf(v).Kind() == reflect.Func {
				return f, nil, fmt.Errorf("a %T is no host function: make one with NewFunction", v)
			}
			return f, nil, nil
		}
		if f.Call == nil {
			return f, nil, errors.New("a function without Call")
		}
		return f, nil, nil
	}
}
