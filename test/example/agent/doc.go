// Command agent shows how a program gives a model one tool, "run code", in which all
// other tools are functions. It asks the model, evaluates the code in the reply and sends
// back the result, until the model replies in words.
//
// The model here is a script, so that the example needs no network. Replace ask with a
// request to a real one.
package main
