// SPDX-License-Identifier: Apache-2.0

package services

import (
	"net/http"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Plugins has the plugins of a scheduler's profiles, and calls their optional interfaces. Upstream also creates plugins
// that multiPoint enables and that are disabled at each extension point; Plugins has them too.
type Plugins struct {
	made []made
	// endCheckers are those of the plugins, without which each end of a pod would search for them.
	endCheckers map[pluginOf]EndChecker
}

// pluginOf is the name of a plugin in a profile.
type pluginOf struct{ profile, name string }

type made struct {
	profile string
	plugin  framework.Plugin
}

// Collect wraps the registry's factories, so that Plugins has each plugin that they create. They must not be called in
// parallel.
func Collect(registry frameworkruntime.Registry) *Plugins {
	p := &Plugins{endCheckers: map[pluginOf]EndChecker{}}
	for name, factory := range registry {
		factory := factory
		registry[name] = func(args runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			plugin, err := factory(args, handle)
			if err == nil {
				of := made{ProfileOf(handle), plugin}
				p.made = append(p.made, of)
				if checker, ok := plugin.(EndChecker); ok {
					p.endCheckers[pluginOf{of.profile, plugin.Name()}] = checker
				}
			}
			return plugin, err
		}
	}
	return p
}

// Each calls visit for each plugin, with its profile.
func (p *Plugins) Each(visit func(profile string, plugin framework.Plugin)) {
	for _, made := range p.made {
		visit(made.profile, made.plugin)
	}
}

// SetPodMover calls SetPodMover of each PodMover.
func (p *Plugins) SetPodMover(move func(event framework.ClusterEvent)) {
	for _, made := range p.made {
		if mover, ok := made.plugin.(PodMover); ok {
			mover.SetPodMover(move)
		}
	}
}

// EndHelps reports whether a pod that a plugin rejected may fit after the end of another pod. It is true for a plugin
// that is not an EndChecker.
func (p *Plugins) EndHelps(plugin string, ended, pending *v1.Pod) bool {
	checker, ok := p.endCheckers[pluginOf{pending.Spec.SchedulerName, plugin}]
	return !ok || checker.EndHelps(ended, pending)
}

// Pages returns the pages of all plugins by their paths. If several plugins have the same path, the first one wins,
// sorted by profile and then by name.
func (p *Plugins) Pages() map[string]http.Handler {
	ordered := append([]made(nil), p.made...)
	sort.Slice(ordered, func(i, j int) bool {
		a, b := ordered[i], ordered[j]
		return a.profile < b.profile || a.profile == b.profile && a.plugin.Name() < b.plugin.Name()
	})
	pages := map[string]http.Handler{}
	owner := map[string]string{}
	for _, made := range ordered {
		pager, ok := made.plugin.(Pager)
		if !ok {
			continue
		}
		name := made.plugin.Name()
		for path, page := range pager.Pages() {
			if first, found := owner[path]; found {
				// The same plugin in another profile has the same page.
				if first != name {
					klog.InfoS("Not serving a plugin's page, because another plugin has the same path",
						"path", path, "plugin", name, "servedPlugin", first)
				}
				continue
			}
			if page == nil || !strings.HasPrefix(path, "/") {
				klog.InfoS("Not serving a plugin's page, because it has no handler or its path does not begin with a slash",
					"path", path, "plugin", name)
				continue
			}
			owner[path], pages[path] = name, page
		}
	}
	return pages
}

// Serve adds the pages of the plugins to the scheduler's handler, a mux.PathRecorderMux, which keeps its own paths.
func (p *Plugins) Serve(handler http.Handler) http.Handler {
	pages := p.Pages()
	handler.(*mux.PathRecorderMux).NotFoundHandler(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if page, found := pages[request.URL.Path]; found {
			page.ServeHTTP(w, request)
			return
		}
		http.NotFound(w, request)
	}))
	return handler
}

// ProfileOf returns the name of the profile for which a plugin is created, or "" without a profile, as in an extender.
func ProfileOf(handle framework.Handle) string {
	if profile, ok := handle.(framework.Framework); ok {
		return profile.ProfileName()
	}
	return ""
}
