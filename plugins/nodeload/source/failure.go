// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// longestText bounds what is repeated of a server's words.
const longestText = 300

// clip shortens a server's words to what a log line bears, without characters that would break it.
func clip(text string) string {
	if len(text) > longestText {
		cut := longestText
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
}

// A failure that concerns one query may be one expression's fault; others may do better. All other failures are the
// server's.
var errTooLarge = errors.New("the answer is too large")

func tooLarge(what string) error {
	return fmt.Errorf("%w: %s; next: make the queries return one series for each node", errTooLarge, what)
}

// refusal is a server's word that it did not evaluate what was asked.
type refusal struct {
	// errorType is Prometheus' own: bad_data, execution, timeout; empty if the server said nothing in its form.
	errorType, message string
	status             int
}

func (r *refusal) Error() string {
	said := strings.Trim(r.errorType+": "+r.message, ": ")
	if said == "" {
		said = fmt.Sprintf("HTTP status %d", r.status)
	}
	return "the query was refused: " + said + "; next: try it in the server's own query page"
}

// lateError is of a request that no call waited for any longer. It already says what to do next.
type lateError string

func (e lateError) Error() string { return string(e) }

// oneByOne says whether asking each resource by itself can help at once. It does not help a server that is too slow.
func oneByOne(err error) bool {
	var refused *refusal
	return errors.As(err, &refused) && !outOfTime(err) || errors.Is(err, errTooLarge)
}

// outOfTime says whether the server, or a proxy on the way to it, has given up by a time limit.
func outOfTime(err error) bool {
	var refused *refusal
	var late lateError
	return errors.As(err, &refused) && refused.errorType == "timeout" || errors.As(err, &late)
}

// tooLong says whether a status may mean that a question does not fit into an address.
func tooLong(status int) bool {
	return status == http.StatusRequestEntityTooLarge || status == http.StatusRequestURITooLong ||
		status == http.StatusRequestHeaderFieldsTooLarge
}

// notPrometheus says why in words of its own: the answer's may be anybody's, and have anything in them.
func notPrometheus(why string) error {
	return toldError("the answer is not one of Prometheus' HTTP API: " + why + "; next: check that the endpoint is the " +
		"server's address, with its path prefix")
}

// unusable makes an error of an answer that is not 2xx. What it says is heard only in Prometheus' own form, because
// pages for people tell less than the status does.
func unusable(response *http.Response, body []byte, secrets []string) error {
	status := response.StatusCode
	var said struct {
		Status    string `json:"status"`
		ErrorType string `json:"errorType"`
		Error     string `json:"error"`
	}
	inForm := decoding.Unmarshal(body, &said) == nil && said.Status == "error"

	refused := &refusal{status: status}
	if inForm {
		refused.errorType, refused.message = said.ErrorType, said.Error
	}
	if tooLong(status) {
		return refused
	}
	switch status {
	case http.StatusUnprocessableEntity:
		return refused
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("HTTP status %d: the credentials are not accepted; next: check bearerTokenFile, headers and the client "+
			"certificate, and the rights that they give", status)
	case http.StatusNotFound:
		return errors.New("HTTP status 404: there is no /api/v1/query; next: check the endpoint's path prefix")
	}
	if inForm {
		switch said.ErrorType {
		case "bad_data", "execution", "timeout":
			return refused
		}
		return fmt.Errorf("HTTP status %d: %s: %s; next: look at the server's log", status,
			clip(hide(said.ErrorType, secrets)), clip(hide(said.Error, secrets)))
	}
	if status == http.StatusGatewayTimeout {
		return lateError("HTTP status 504: what is in front of the server did not wait for its answer; next: see whether the server is " +
			"up, and how long it takes for the queries")
	}
	return fmt.Errorf("HTTP status %d; next: look at the server's log, at what is in front of it, and whether the endpoint should "+
		"begin with https", status)
}

// unreachable makes an error of one that the client of net/http returned: without the URL that it begins with.
func unreachable(ctx context.Context, timeout time.Duration, err error, secrets []string) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var known interface{ told() }
	var refused *refusal
	switch {
	case errors.As(err, &refused), errors.Is(err, errTooLarge), errors.As(err, &known):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return lateError(fmt.Sprintf("no answer within %v; next: see whether the server is up, and how long it takes for the queries", timeout))
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return errors.New(clip(hide(err.Error(), secrets)) + "; next: see whether the server can be reached from here, with these certificates")
}

// toldError already says what to do next.
type toldError string

func (e toldError) Error() string { return string(e) }
func (toldError) told()           {}

// shortestSecret keeps words from being taken for secrets because a header's value is one, such as a tenant's number.
const shortestSecret = 6

// hide removes secrets from a text, in case a server repeats what it was sent.
func hide(text string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) >= shortestSecret {
			text = strings.ReplaceAll(text, secret, "[hidden]")
		}
	}
	return text
}

func basic(user *url.Userinfo) string {
	password, _ := user.Password()
	return base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
}
