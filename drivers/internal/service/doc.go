// Package service holds what the drivers of model services have in common and no one
// else needs: where a service is and which key it is shown, the client that asks it,
// what becomes of its refusals, what is kept out of errors, and the forms in which
// several services want the same.
package service
