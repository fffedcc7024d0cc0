// Package modeltest tests drivers of model services over real HTTP: against the mock model server from npm, which
// speaks all supported protocols, and against recorded answers and every way in which a service may fail.
//
//	var service = modeltest.Service{ /* the bytes of the protocol, and how to make a driver */ }
//
//	func TestFaults(t *testing.T) { modeltest.TestFaults(t, service) }
//
//	func TestShapes(t *testing.T) { modeltest.TestShapes(t, service) }
//
//	func TestMock(t *testing.T) { modeltest.TestMock(t, service) }
//
//	func TestModel(t *testing.T) {
//		mock := modeltest.StartMock(t)
//		agenttest.TestModel(t, agenttest.Model{
//			New: func(t *testing.T, turns ...agent.Step) agent.Driver {
//				return service.New(t, mock.Play(t, turns...).URL, http.DefaultClient)
//			},
//		})
//	}
//
// # The mock server
// StartMock runs one server process, which ends with the test. Play gives it turns and returns an endpoint
// that answers with them: when the messages contain n assistant replies, the endpoint answers with turn n, blocking or
// streaming, for every caller and any number of times. One endpoint can therefore serve any number of runs at once, and
// all tests in a package may share a process. The endpoint's URL serves the paths of all services:
//
//	/v1/chat/completions                      OpenAI; base URL is URL + "/v1"
//	/v1/responses                             OpenAI; base URL is URL + "/v1"
//	/v1/messages                              Anthropic; base URL is URL
//	/v1beta/models/{model}:generateContent    Gemini; base URL is URL
//
// Where the server differs from a service, a driver must support both: a Gemini reply with calls has the
// finish reason FUNCTION_CALL (the service sends STOP), and only OpenAI drivers receive arguments that are not JSON
// unchanged.
//
// # Golden exchanges
//
// Golden is a server in the test's own process that answers with raw bytes, given in Go or read from files,
// frame by frame; it can be slow, break off, or go silent. TestFaults derives all of its faults from the few
// answers in a Service.
//
// # Requests
//
// Both kinds of endpoints record every Request as it arrived. The mock server also records its own reading of it,
// in the same format for all protocols: see Endpoint.Journal.
//
// # Concurrency
//
// Any number of goroutines may use an endpoint. Everything is closed at the end of the test.
package modeltest
