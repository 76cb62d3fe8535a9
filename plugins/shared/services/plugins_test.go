// SPDX-License-Identifier: Apache-2.0

package services

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// served is a plugin that implements all optional interfaces.
type served struct {
	framework.FilterPlugin
	name, profile string
	pages         map[string]http.Handler
}

func (s *served) Name() string { return s.name }
func (s *served) SetPodMover(move func(framework.ClusterEvent)) {
	move(framework.ClusterEvent{Label: s.profile + " " + s.name})
}
func (s *served) Pages() map[string]http.Handler { return s.pages }

func (s *served) EndHelps(ended, pending *v1.Pod) bool {
	return ended.Name == s.profile+" "+s.name
}

func saying(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
}

// collected returns the plugins of the profiles b and a, which both enable First and Second. Unused is only in the
// registry.
func collected(t *testing.T, pages map[string]map[string]http.Handler) *Plugins {
	t.Helper()
	registry := frameworkruntime.Registry{queuesort.Name: queuesort.New, defaultbinder.Name: defaultbinder.New}
	for _, name := range []string{"First", "Second", "Unused"} {
		name := name
		registry[name] = func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			return &served{name: name, profile: ProfileOf(handle), pages: pages[name]}, nil
		}
	}
	plugins := Collect(registry)
	for _, profile := range []string{"b", "a"} {
		enabled := config.PluginSet{Enabled: []config.Plugin{
			{Name: "Second"}, {Name: "First"}, {Name: queuesort.Name}, {Name: defaultbinder.Name},
		}}
		_, err := frameworkruntime.NewFramework(registry, &config.KubeSchedulerProfile{
			SchedulerName: profile,
			Plugins:       &config.Plugins{MultiPoint: enabled, Filter: config.PluginSet{Enabled: enabled.Enabled[:2]}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return plugins
}

// Each profile has its own plugins, and each plugin is given the queue once although it is enabled twice.
func TestSetPodMover(t *testing.T) {
	plugins, got := collected(t, nil), map[string]int{}
	plugins.SetPodMover(func(event framework.ClusterEvent) { got[event.Label]++ })
	if diff := cmp.Diff(map[string]int{"a First": 1, "a Second": 1, "b First": 1, "b Second": 1}, got); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
}

func TestCollectIgnoresFailedPlugins(t *testing.T) {
	registry := frameworkruntime.Registry{"Broken": func(runtime.Object, framework.Handle) (framework.Plugin, error) {
		return nil, fmt.Errorf("broken")
	}}
	plugins := Collect(registry)
	if _, err := registry["Broken"](nil, nil); err == nil || err.Error() != "broken" {
		t.Errorf("the factory says %v", err)
	}
	if len(plugins.Pages()) != 0 {
		t.Error("it has pages")
	}
}

func TestPages(t *testing.T) {
	tests := []struct {
		name          string
		first, second map[string]http.Handler
		want          map[string]string
	}{
		{name: "none", want: map[string]string{}},
		{
			name:   "of two plugins",
			first:  map[string]http.Handler{"/a": saying("a"), "/b": saying("b")},
			second: map[string]http.Handler{"/c": saying("c")},
			want:   map[string]string{"/a": "a", "/b": "b", "/c": "c"},
		},
		{
			name:   "of the same path",
			first:  map[string]http.Handler{"/a": saying("first")},
			second: map[string]http.Handler{"/a": saying("second"), "/b": saying("b")},
			want:   map[string]string{"/a": "first", "/b": "b"},
		},
		{
			name:   "that cannot be served",
			first:  map[string]http.Handler{"a": saying("a"), "": saying("empty"), "/nil": nil},
			second: map[string]http.Handler{"/nil": saying("nil")},
			want:   map[string]string{"/nil": "nil"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := map[string]string{}
			for path, page := range collected(t, map[string]map[string]http.Handler{"First": tt.first, "Second": tt.second}).Pages() {
				answer := httptest.NewRecorder()
				page.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
				got[path] = answer.Body.String()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServe(t *testing.T) {
	own := mux.NewPathRecorderMux("test")
	own.Handle("/healthz", saying("ok"))
	handler := collected(t, map[string]map[string]http.Handler{
		"First": {"/page": saying("page"), "/healthz": saying("page")},
	}).Serve(own)
	const none = "404 page not found\n"
	for path, want := range map[string]string{
		"/page": "page", "/page?node=a": "page", "/healthz": "ok", "/page/": none, "/pages": none,
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if got := answer.Body.String(); got != want {
			t.Errorf("%s answers %q, want %q", path, got, want)
		}
	}
}

func TestEndHelps(t *testing.T) {
	plugins := collected(t, nil)
	for _, tt := range []struct {
		plugin, profile, ended string
		want                   bool
	}{
		{"First", "a", "a First", true}, {"First", "a", "b First", false}, {"First", "b", "b First", true},
		{"Second", "a", "a First", false}, {defaultbinder.Name, "a", "any", true}, {"Unused", "a", "any", true},
	} {
		ended, pending := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: tt.ended}}, &v1.Pod{Spec: v1.PodSpec{SchedulerName: tt.profile}}
		if got := plugins.EndHelps(tt.plugin, ended, pending); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
