// Command agent gives a model one tool, "run code", in which all other tools are functions.
// It asks the model, evaluates the code in the reply, and sends the result back, until the
// model replies without code.
package main
