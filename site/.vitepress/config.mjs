// The site shows the repository's own Markdown files, with search. `make site` builds it.
import { existsSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..')
const source = 'https://github.com/sparseserve/sparseserve/blob/main/'

const isPage = file => /^(docs\/.*|README|CONTRIBUTING|CHANGELOG)\.md$/.test(file)
const pages = (...items) => items.map(([text, link]) => ({ text, link }))

// Links to files that are no pages, such as examples, lead to the repository.
function linkSources(md) {
  const normal = md.renderer.rules.link_open ?? ((t, i, o, e, self) => self.renderToken(t, i, o))
  md.renderer.rules.link_open = (tokens, i, options, env, self) => {
    const href = tokens[i].attrGet('href')
    const [path] = href.split('#')
    const file = relative(root, resolve(dirname(join(root, env.relativePath)), path))
    if (path && !/^\w+:/.test(path) && !isPage(file) && existsSync(join(root, file))) {
      tokens[i].attrSet('href', source + file)
      return self.renderToken(tokens, i, options)
    }
    return normal(tokens, i, options, env, self)
  }
}

// Anchors are those of GitHub, so that a link works in both.
const slugify = title => title.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '')
  .replace(/\s/g, '-')

export default defineConfig({
  title: 'sparseserve',
  description: 'Simulates long-context LLM serving with sparse attention and a hierarchical KV cache',
  srcDir: 'src', // copies of README.md, CONTRIBUTING.md, CHANGELOG.md and docs
  outDir: '../out/site',
  rewrites: { 'README.md': 'index.md' },
  lastUpdated: false,
  markdown: { config: linkSources, anchor: { slugify }, languageAlias: { cuda: 'cpp' } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: pages(['Tutorial', '/docs/tutorial/1-install'], ['Configuration', '/docs/configuration'],
      ['Evidence', '/docs/evidence']),
    socialLinks: [{ icon: 'github', link: 'https://github.com/sparseserve/sparseserve' }],
    sidebar: [
      { text: 'Tutorial', items: pages(
        ['1. Install', '/docs/tutorial/1-install'],
        ['2. First simulation', '/docs/tutorial/2-first-simulation'],
        ['3. Change one thing', '/docs/tutorial/3-change-one-thing'],
        ['4. Your trace', '/docs/tutorial/4-your-trace'],
        ["5. Your server's log", '/docs/tutorial/5-your-servers-log'],
        ['6. What to buy', '/docs/tutorial/6-what-to-buy']) },
      { text: 'How-to', items: pages(
        ['Troubleshooting', '/docs/troubleshooting'], ['Planning', '/docs/planning'],
        ['What-if', '/docs/what-if'], ['Prefix cache', '/docs/prefix-cache'],
        ['Hot buffers', '/docs/hot-buffers'], ['Clusters', '/docs/clusters'],
        ['Calibration', '/docs/calibration'], ['Live runs', '/docs/live'],
        ['Recipes', '/docs/extending']) },
      { text: 'Reference', items: pages(
        ['Configuration', '/docs/configuration'], ['Result folders', '/docs/results'], ['Columns and fields', '/docs/columns'],
        ['Pictures', '/docs/figures']) },
      { text: 'Explanation', items: pages(
        ['Concepts and glossary', '/docs/concepts'], ['Cost model', '/docs/cost-model'],
        ['Source tree', '/docs/house'], ['Testing', '/docs/testing'],
        ['Performance', '/docs/performance']) },
      { text: 'Evidence', items: pages(
        ['Evidence', '/docs/evidence'], ['Questions of others', '/docs/questions'],
        ['SparseServe', '/docs/studies/sparseserve'],
        ['PSA', '/docs/studies/psa'], ['MInference', '/docs/studies/minference'],
        ['Accuracy', '/docs/studies/accuracy-proxy'], ['Eviction', '/docs/studies/eviction'],
        ['Prefix hits', '/docs/studies/prefix']) },
    ],
  },
})
