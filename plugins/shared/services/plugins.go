// SPDX-License-Identifier: Apache-2.0

package services

import (
	"net/http"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// What this package promises to plugins is given to them here. The scheduler calls it.

// Plugins are those that were made for a scheduler's profiles. Upstream also makes a plugin that multiPoint enables and
// that is disabled at each extension point; it is given what it asks for, too.
type Plugins struct {
	made []made
}

type made struct {
	profile string
	plugin  framework.Plugin
}

// Collect has the registry's factories note the plugins that they make from now on, one after the other.
func Collect(registry frameworkruntime.Registry) *Plugins {
	p := &Plugins{}
	for name, factory := range registry {
		factory := factory
		registry[name] = func(args runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			plugin, err := factory(args, handle)
			if err == nil {
				p.made = append(p.made, made{ProfileOf(handle), plugin})
			}
			return plugin, err
		}
	}
	return p
}

// Each visits all plugins with the profiles that they were made for.
func (p *Plugins) Each(visit func(profile string, plugin framework.Plugin)) {
	for _, made := range p.made {
		visit(made.profile, made.plugin)
	}
}

// SetPodMover gives the scheduler's queue to the plugins that want to move pods.
func (p *Plugins) SetPodMover(move func(event framework.ClusterEvent)) {
	for _, made := range p.made {
		if mover, ok := made.plugin.(PodMover); ok {
			mover.SetPodMover(move)
		}
	}
}

// Pages returns the pages of all plugins by their paths. If several have the same path, it is served for the first one
// by profile, and then by name.
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
				// The plugin of another profile brings the same page.
				if first != name {
					klog.InfoS("A page of a plugin is not served: another plugin has one of the same path",
						"path", path, "plugin", name, "servedPlugin", first)
				}
				continue
			}
			if page == nil || !strings.HasPrefix(path, "/") {
				klog.InfoS("A page of a plugin is not served: it needs a handler, and a path that begins with a slash",
					"path", path, "plugin", name)
				continue
			}
			owner[path], pages[path] = name, page
		}
	}
	return pages
}

// Serve has the pages of the plugins served at the paths at which the scheduler has nothing of its own. The handler is
// the scheduler's, a mux.PathRecorderMux.
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

// ProfileOf returns the name of the profile that a plugin is made for; "" where there is none, as in an extender.
func ProfileOf(handle framework.Handle) string {
	if profile, ok := handle.(framework.Framework); ok {
		return profile.ProfileName()
	}
	return ""
}
