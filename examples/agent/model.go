package main

// script is what the model says, one reply after the other. It makes two mistakes, as models
// do, and corrects them by the error messages.
var script = []string{
	"I'll add up the open orders.\n\n```ts\nconst open: { total: number }[] = shop.find({ status: 'open' });\nconsole.log(open.length, 'open');\nopen.reduce((sum, o) => sum + o.totals, 0)\n```",
	"The field is called total.\n\n```js\nconst open = shop.find({ state: 'open' });\nopen.reduce((sum, o) => sum + o.total, 0)\n```",
	"The argument is called status.\n\n```js\nasync () => {\n  const open = shop.find({ status: 'open' });\n  return { sum: open.reduce((sum, o) => sum + o.total, 0), list: open.map(o => o.id) };\n}\n```",
	"```js\ntry { shop.refund(3) } catch (err) { err.message }\n```",
	"Orders 1 and 3 are open, 19.75 in all. Refunds need a person's approval.",
}

// askModel replaces a request to a model, so that the example needs no network.
func askModel(talk []message) string {
	asked := 0
	for _, m := range talk {
		if m.role == "assistant" {
			asked++
		}
	}
	return script[asked]
}
