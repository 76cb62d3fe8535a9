// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// pager is a plugin with pages.
type pager map[string]http.Handler

func (pager) Name() string                     { return "Pager" }
func (p pager) Pages() map[string]http.Handler { return p }

// TestPluginPages requests the pages of a plugin from a standby, with and without authorisation.
func TestPluginPages(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = w.Write([]byte("the plugin's page " + request.URL.RawQuery))
	})
	standby := func() bool { return false }
	client := fake.NewSimpleClientset()
	handler := newHealthzAndMetricsHandler(&config.KubeSchedulerConfiguration{}, informers.NewSharedInformerFactory(client, 0), standby)
	registry := frameworkruntime.Registry{"Pager": func(runtime.Object, framework.Handle) (framework.Plugin, error) {
		return pager{"/page": page, "/healthz": page}, nil
	}}
	plugins := services.Collect(registry)
	if _, err := registry["Pager"](nil, nil); err != nil {
		t.Fatal(err)
	}
	handler = plugins.Serve(handler)
	authn := authenticator.RequestFunc(func(request *http.Request) (*authenticator.Response, bool, error) {
		name := request.Header.Get("Authorization")
		return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
	})
	authz := authorizer.AuthorizerFunc(func(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
		if attributes.GetUser().GetName() == "monitoring" && !attributes.IsResourceRequest() && attributes.GetVerb() == "get" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionDeny, "", nil
	})
	chain := buildHandlerChain(handler, authn, authz)
	tests := []struct {
		name, user, method, target string
		wantCode                   int
		wantBody                   string
	}{
		{name: "a page", user: "monitoring", target: "/page", wantCode: http.StatusOK, wantBody: "the plugin's page "},
		{name: "a page with a query", user: "monitoring", target: "/page?node=a", wantCode: http.StatusOK, wantBody: "the plugin's page node=a"},
		{name: "anonymous", target: "/page", wantCode: http.StatusUnauthorized},
		{name: "another user", user: "another", target: "/page", wantCode: http.StatusForbidden},
		{name: "another method", user: "monitoring", method: http.MethodPost, target: "/page", wantCode: http.StatusForbidden},
		{name: "below a page", user: "monitoring", target: "/page/", wantCode: http.StatusNotFound},
		{name: "no page", user: "monitoring", target: "/pages", wantCode: http.StatusNotFound},
		{name: "a path of the scheduler", user: "monitoring", target: "/healthz", wantCode: http.StatusOK, wantBody: "ok"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			request := httptest.NewRequest(tt.method, tt.target, nil)
			if tt.user != "" {
				request.Header.Set("Authorization", tt.user)
			}
			answer := httptest.NewRecorder()
			chain.ServeHTTP(answer, request)
			if answer.Code != tt.wantCode {
				t.Errorf("answered %d, want %d", answer.Code, tt.wantCode)
			}
			if body := answer.Body.String(); tt.wantBody != "" && body != tt.wantBody || tt.wantBody == "" && strings.Contains(body, "the plugin's") {
				t.Errorf("answered %q, want %q", body, tt.wantBody)
			}
		})
	}
}
