package sandbox

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gaol/policy"
)

// fill sets all fields that JSON encodes, so that a field that is lost on the way is noticed.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(depth))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(depth))
	default:
		panic("a field that is not data: " + v.Type().String())
	}
}

// filled returns a spec or command whose plan and permissions are real ones, with egress.
func filled[T Spec | Command](t *testing.T, set func(v *T, plan *policy.Plan, p policy.Permissions)) *T {
	t.Helper()
	p := policy.Strict()
	p.Network = policy.Scope{Rules: []policy.Rule{{Mode: policy.Allow, Patterns: []string{"tcp://example.com:443", "tcp://localhost:5432"}}}}
	p = p.Over(policy.Default())
	plan, err := policy.Lower(p, policy.World{Own: []string{"/workspace"}, HostPorts: []uint16{5432}})
	if err != nil {
		t.Fatal(err)
	}
	v := new(T)
	set(v, plan, p)
	elem := reflect.ValueOf(v).Elem()
	for i := range elem.NumField() {
		if f := elem.Type().Field(i); f.Tag.Get("json") != "-" && elem.Field(i).IsZero() {
			fill(elem.Field(i), 1)
		}
	}
	return v
}

// crossed returns what arrives at the other side of a connection.
func crossed[T any](t *testing.T, v *T) *T {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	got := new(T)
	if err := json.Unmarshal(text, got); err != nil {
		t.Fatal(err)
	}
	return got
}

// Specs and commands are data.
func TestDescriptionsAreData(t *testing.T) {
	same := cmp.Options{cmpopts.IgnoreUnexported(policy.Egress{})}
	spec := filled(t, func(s *Spec, plan *policy.Plan, p policy.Permissions) { s.Plan, s.Permissions = plan, p })
	got := crossed(t, spec)
	if diff := cmp.Diff(spec, got, same, cmpopts.IgnoreFields(Spec{}, "Mounts")); diff != "" {
		t.Errorf("spec (-sent +got):\n%s", diff)
	}
	for _, e := range []*policy.Egress{spec.Plan.Net.Egress, got.Plan.Net.Egress} {
		host, ok := e.HostPort(5432)
		if !e.Connect("example.com", 443).Allowed || e.Connect("example.org", 443).Allowed || !host.Allowed || !ok {
			t.Errorf("egress decides otherwise: %+v", e)
		}
	}
	command := filled(t, func(c *Command, plan *policy.Plan, _ policy.Permissions) { c.Plan = plan })
	if diff := cmp.Diff(command, crossed(t, command), same, cmpopts.IgnoreFields(Command{}, "Files", "Denied", "Connect", "OnOwner", "OnCommand")); diff != "" {
		t.Errorf("command (-sent +got):\n%s", diff)
	}
	for _, v := range []any{new(Exit), new(Usage), new(Resources), new(policy.Denial), new(TerminalSize)} {
		fill(reflect.ValueOf(v).Elem(), 1)
		text, err := json.Marshal(v)
		got := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if err == nil {
			err = json.Unmarshal(text, got)
		}
		if err != nil || !reflect.DeepEqual(v, got) {
			t.Errorf("%T: %+v arrives as %+v, %v", v, v, got, err)
		}
	}
}
