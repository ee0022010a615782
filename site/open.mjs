// Opens pages of the built site in a browser, wide and narrow. A page that fails to start, or has
// no search, is an error.
import { spawn } from 'node:child_process'
import { createReadStream, existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

const [folder, browser] = process.argv.slice(2)
const types = { html: 'text/html', js: 'text/javascript', css: 'text/css', png: 'image/png' }
const server = createServer((request, response) => {
  const file = join(folder, decodeURI(new URL(request.url, 'http://localhost').pathname))
  if (!existsSync(file)) return response.writeHead(404).end()
  response.setHeader('Content-Type', types[file.split('.').pop()] ?? 'application/octet-stream')
  createReadStream(file).pipe(response)
})

// open returns the page after its scripts have run.
const open = (url, width) => new Promise((resolve, reject) => {
  const run = spawn(browser, ['--headless', '--no-sandbox', '--disable-gpu', '--dump-dom',
    `--window-size=${width},900`, '--virtual-time-budget=5000', url], { timeout: 60_000 })
  let page = ''
  run.stdout.on('data', text => { page += text })
  run.on('error', reject)
  run.on('close', () => resolve(page))
})

server.listen(0, '127.0.0.1', async () => {
  let failed = 0
  for (const path of ['index', 'docs/tutorial/2-first-simulation', 'docs/configuration']) {
    for (const width of [1440, 390]) {
      const page = await open(`http://127.0.0.1:${server.address().port}/${path}.html`, width)
      const right = page.includes('DocSearch-Button') && page.includes('class="VPDoc') &&
        !page.includes('>404<')
      if (!right) failed++
      console.log(`${right ? 'opened' : 'FAILED'} ${path} at ${width} px`)
    }
  }
  process.exit(failed ? 1 : 0)
})
